"""A real Slurm of one node on this machine: its daemons as ordinary processes in a folder of their own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

# Debian's packages slurm-wlm and munge bring these.
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue", "scontrol", "sinfo")
# No accounting, no cgroups, no user of its own: what a container allows to root.
CONFIG = """\
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SrunPortRange={first}-{last}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=20
KillWait=2
MinJobAge=600
SchedulerParameters=sched_interval=2,bf_interval=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def lacking() -> str | None:
    """Return why no Slurm can be started here, or nothing."""
    if os.geteuid() != 0:
        return "Slurm's daemons are started as root here, and this is not root"
    os.environ["PATH"] += f"{os.pathsep}/usr/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"{', '.join(missing)}: not installed (Debian: slurm-wlm, munge)" if missing else None


def free_ports(count: int) -> list[int]:
    """Return ports in a row that nothing listens on."""
    for first in range(20000 + secrets.randbelow(8000), 30000):
        ports = range(first, first + count)
        with contextlib.ExitStack() as listening, contextlib.suppress(OSError):
            for port in ports:
                listening.enter_context(socket.create_server(("", port)))
            return list(ports)
    raise AssertionError("no free ports")


@dataclass
class Cluster:
    """The daemons, and Slurm's own commands asked of them."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def variables(self) -> dict[str, str]:
        """What commands that talk to this Slurm, and their jobs, find in their environment."""
        return {"SLURM_CONF": str(self.config), "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    def start(self) -> None:
        """Write the configuration and a key, start the daemons, and wait until the node takes jobs."""
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir()
        # munged wants its socket's folder open to all, its key to nobody else.
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        controller, daemon, *others = free_ports(40)
        text = CONFIG.format(
            host=socket.gethostname().split(".")[0], folder=self.folder, controller=controller, daemon=daemon,
            first=others[0], last=others[-1], cpus=os.cpu_count(),
            memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 512,
        )  # fmt: skip
        self.config.write_text(text)
        # A job's srun is given no SLURM_CONF by the executor's job step: elsewhere the file is in /etc.
        (self.folder / "bin").mkdir()
        srun = self.folder / "bin/srun"
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={self.config} exec {shutil.which("srun")} "$@"\n')
        srun.chmod(0o755)
        munge = [f"--{name}-file={self.folder}/munge/{name}" for name in ("log", "pid", "seed")]
        self._daemon("munged", "--foreground", f"--socket={self.folder}/munge.socket", f"--key-file={key}", *munge)
        self._until("munged's socket", lambda: (self.folder / "munge.socket").exists())
        self._daemon("slurmctld", "-D", "-f", str(self.config))
        self.start_slurmd()

    def start_slurmd(self) -> None:
        """Start the node's daemon, as after a reboot, and wait until the node takes jobs."""
        self._daemon("slurmd", "-D", "-f", str(self.config))
        self._until("the node", lambda: self.ask("sinfo", "-h", "-o", "%T").strip() in {"idle", "mixed", "allocated"})

    def ask(self, *command: str) -> str:
        """Return the output of a Slurm command, or nothing if the controller does not answer."""
        return subprocess.run(command, env=os.environ | self.variables, capture_output=True, text=True).stdout

    def running(self) -> list[str]:
        """Return the numbers of running jobs."""
        return self.ask("squeue", "-h", "-t", "R", "-o", "%i").split()

    def kill(self, name: str) -> None:
        """Kill a daemon without a clean shutdown, as a crash would."""
        process = self.daemons.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End all jobs, then the daemons."""
        self.ask("scancel", "--user", "root")
        for name in ("slurmd", "slurmctld", "munged"):
            if process := self.daemons.pop(name, None):
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _daemon(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("ab") as output:
            self.daemons[command[0]] = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def _until(self, what: str, ready: object, seconds: float = 240) -> None:
        end = time.monotonic() + seconds
        while not ready():
            for name, process in self.daemons.items():
                assert process.poll() is None, f"{name} ended:\n{self.logs()}"
            assert time.monotonic() < end, f"{what} is not ready after {seconds} s:\n{self.logs()}"
            time.sleep(0.2)

    def logs(self) -> str:
        """Return the ends of the daemons' logs."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("*.out"), *(self.folder / "munge").glob("log")]
        return "\n".join(f"{file.name}: {file.read_text(errors='replace')[-1500:]}" for file in files)
