"""Snakemake's Kubernetes executor for jobs that share a volume with the workflow: `executor: kubernetes-shared`.

snakemake-executor-plugin-kubernetes assumes that nothing is shared, regardless of `--shared-fs-usage`, and stages all
files through a storage provider. Here all pods mount the same claim, and jobs run in the workflow's folder. Everything
else is that plugin's.
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
    """Runs the same jobs in the workflow's folder instead of an empty one."""

    def get_job_exec_prefix(self, job: JobExecutorInterface) -> str:
        """Return the prefix of a job's command."""
        return f"cd {shlex.quote(str(self.workflow.workdir_init))}"
