"""Snakemake's Kubernetes executor for jobs that share a volume with the workflow: `executor: kubernetes-shared`.

snakemake-executor-plugin-kubernetes takes it that nothing is shared, whatever `--shared-fs-usage` says, and so wants
all files staged through a storage provider. Here they lie on one claim that every pod mounts, and jobs run where the
workflow does. All else is that plugin's.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

import snakemake_executor_plugin_kubernetes as kubernetes
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

common_settings = replace(
    kubernetes.common_settings,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    auto_deploy_default_storage_provider=False,
)


@dataclass
class ExecutorSettings(kubernetes.ExecutorSettings):
    """The same settings, as ``--kubernetes-shared-…``."""


class Executor(kubernetes.Executor):
    """The same jobs, in the folder that the workflow runs in instead of an empty one."""

    def get_job_exec_prefix(self, job: JobExecutorInterface) -> str:
        """Return what comes before a job's command."""
        return f"cd {shlex.quote(str(self.workflow.workdir_init))}"
