"""Runs `examples/slurm` with Slurm, and compares the file with that of a single run.

Usage: python3 interop/cluster/slurm.py GGUF_BINARY CHECKPOINT_DIR

Starts Slurm with one node on this machine, with its own ports and folders, and requeues one task of the array while it runs. Needs
root and the Debian packages `slurmctld`, `slurmd`, `slurm-client` and `munge`.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUBMIT = Path(__file__).resolve().parents[2] / "examples" / "slurm" / "submit.sh"

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort=26817
SlurmdPort=26818
ProctrackType=proctrack/pgid
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
SlurmdParameters=config_overrides
"""


def call(*words, **options):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def start(folder):
    """Starts the daemons; returns them and the environment of clients."""
    munge, host = folder / "munge", socket.gethostname().split(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir()
    munge.mkdir()
    (munge / "key").write_bytes(os.urandom(1024))
    (munge / "key").chmod(0o400)
    call("chown", "-R", "munge:munge", munge)
    folder.chmod(0o755)
    words = ["/usr/sbin/munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket"]
    words += [f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    daemons = [subprocess.Popen(words, user="munge", **quiet)]
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, host=host))
    time.sleep(1)
    for daemon in ("slurmctld", "slurmd"):
        daemons.append(subprocess.Popen([f"/usr/sbin/{daemon}", "-D", "-f", configuration], **quiet))
        time.sleep(2)
    return daemons, {**os.environ, "SLURM_CONF": str(configuration)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("checkpoint", type=Path)
    options = parser.parse_args()
    binary, checkpoint = options.gguf, options.checkpoint
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    daemons, environment = start(folder)
    try:
        work = folder / "work"
        work.mkdir()
        (work / "bin").mkdir()
        (work / "bin" / "gguf").symlink_to(binary.resolve())
        environment["PATH"] = f"{work}/bin:{environment['PATH']}"
        call(binary, "convert", checkpoint, "-o", work / "f16.gguf", "--outtype", "f16")
        call(binary, "quantize", work / "f16.gguf", work / "whole.gguf", "Q4_K_M")
        output = call(SUBMIT, "f16.gguf", "q4.gguf", "Q4_K_M", "4", cwd=work, env=environment)
        print(output.strip())
        print(call("squeue", "-r", env=environment))
        requeued = False
        for _ in range(1500):
            jobs = call("squeue", "-r", "-h", "-o", "%i %j %T", env=environment).splitlines()
            running = [job.split()[0] for job in jobs if "gguf-quantize RUNNING" in job]
            if running and not requeued:
                print("requeued", running[0])
                requeued = subprocess.run(["scontrol", "requeue", running[0]], env=environment).returncode == 0
            if not jobs:
                break
            time.sleep(0.2)
        same = (work / "q4.gguf").exists() and (work / "q4.gguf").read_bytes() == (work / "whole.gguf").read_bytes()
        left = sorted(file.name for file in work.iterdir() if file.name.startswith(("q4-", ".q4")))
        for log in sorted(work.glob("slurm-*.out")):
            print(f"{log.name}: {log.read_text().strip()}")
        print(f"{'same bytes' if same else 'DIFFERENT BYTES'}, left {left}, a task requeued: {requeued}")
        sys.exit(0 if same and not left else 1)
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
