"""Commands of `examples/slurm` and `examples/kubernetes`, run as local processes.

`interop/cluster/slurm.py` tests them with a real Slurm.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import gguf_kit
import pytest


@pytest.fixture
def examples(checkpoint):
    return checkpoint.parent.parent / "examples"


@pytest.fixture
def environment(folder):
    """Put the `gguf` command of the package first on PATH."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "gguf"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gguf_kit "$@"\n')
    command.chmod(0o755)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONSAFEPATH": "1"}


def run(words, environment, **more):
    done = subprocess.run(list(map(str, words)), env={**environment, **more}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def same_as_one_run(folder, out):
    gguf_kit.quantize("tiny.gguf", {"Q4_K_M": "whole.gguf"})
    return (folder / out).read_bytes() == (folder / "whole.gguf").read_bytes()


#: Replacement of `sbatch` that runs array tasks as processes, and dependent jobs after them.
SBATCH = """
    #!{python}
    import os, re, subprocess, sys
    *flags, script = sys.argv[1:]
    options = dict(flag[2:].partition("=")[::2] for flag in flags)
    lines = re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", open(script).read(), re.M)
    options = {{**dict(lines), **options}}
    with open("sbatch.log", "a") as log:
        print(os.path.basename(script), options.get("array"), options.get("dependency"), file=log)
    array = options.get("array")
    first, last = map(int, array.split("-")) if array else (1, 1)
    for task in reversed(range(first, last + 1)):
        own = {{"SLURM_CPUS_PER_TASK": options["cpus-per-task"]}}
        if array:
            own.update(SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_COUNT=str(last))
        subprocess.run(["bash", script], env={{**os.environ, **own}}, check=True, stdout=2)
    print("4711" if "parsable" in options else "Submitted batch job 4712")
"""


def test_slurm(folder, environment, examples):
    sbatch = folder / "bin" / "sbatch"
    sbatch.write_text(textwrap.dedent(SBATCH).lstrip().format(python=sys.executable))
    sbatch.chmod(0o755)
    run([examples / "slurm" / "submit.sh", "tiny.gguf", "out.gguf", "Q4_K_M", "3"], environment)
    assert same_as_one_run(folder, "out.gguf") and not list(folder.glob("out-*"))
    log = (folder / "sbatch.log").read_text()
    assert log == "quantize.sbatch 1-3 None\nmerge.sbatch None afterok:4711\n"


def test_slurm_task_is_repeated(folder, environment, examples):
    environment.update(SOURCE="tiny.gguf", OUT="out.gguf", TYPE="Q4_K_M", SLURM_ARRAY_TASK_COUNT="2")
    script = ["bash", examples / "slurm" / "quantize.sbatch"]
    run(script, environment, SLURM_ARRAY_TASK_ID="2")
    file = folder / "out-00002-of-00002.gguf"
    made = file.stat()
    assert "exists" in run(script, environment, SLURM_ARRAY_TASK_ID="2")
    # The time of the last reading may change.
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (made.st_ino, made.st_mtime_ns)


def test_kubernetes(folder, environment, examples):
    yaml = pytest.importorskip("yaml")
    text = (examples / "kubernetes" / "quantize-job.yaml").read_text()
    # The current directory is the volume.
    keys, quantize, merge = yaml.safe_load_all(text.replace("/models/f16.gguf", "tiny.gguf").replace("/models/", ""))
    environment.update(keys["data"])
    spec = quantize["spec"]
    assert spec["completionMode"] == "Indexed" and spec["completions"] == int(environment["PARTS"])
    [part] = spec["template"]["spec"]["containers"]
    pod = merge["spec"]["template"]["spec"]
    [wait], [merging] = pod["initContainers"], pod["containers"]
    assert part["resources"]["requests"]["cpu"] == environment["THREADS"]
    waiting = subprocess.Popen(wait["command"], env=environment)
    for index in reversed(range(spec["completions"])):
        assert waiting.poll() is None
        run(part["command"], environment, JOB_COMPLETION_INDEX=str(index))
    assert waiting.wait(timeout=60) == 0
    assert "exists" in run(part["command"], environment, JOB_COMPLETION_INDEX="0")
    run(merging["command"], environment)
    assert same_as_one_run(folder, "q4.gguf")
    # A restarted pod finds its work done.
    run(wait["command"], environment)
    run(merging["command"], environment)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_slurm_scripts_are_valid(examples):
    scripts = sorted((examples / "slurm").iterdir())
    assert [script.name for script in scripts] == ["merge.sbatch", "quantize.sbatch", "submit.sh"]
    for script in scripts:
        subprocess.run(["bash", "-n", script], check=True)
        # `sbatch` ignores directives after the first command.
        head, _, body = script.read_text().partition("\nset -euo pipefail\n")
        assert body and not re.search("^#SBATCH", body, re.M), script
