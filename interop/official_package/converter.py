#!/usr/bin/env python3
"""The official converter of checkpoints on our package in the place of the official one: the same bytes?

    interop/official_package/converter.py PYTHON OFFICIAL OURS ZOO [NAME...]

`PYTHON` is an interpreter with torch and transformers. `OFFICIAL` is llama.cpp's folder with `convert_hf_to_gguf.py`
and `gguf-py` (they come with the source package of `llama-cpp-python`). `OURS` are the folders, joined by `:`, with
`gguf_kit` and with the package `gguf` that `python -m gguf_kit.compat install` makes. `ZOO` is a folder of checkpoints.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

python, official, ours, zoo, *names = sys.argv[1:]
official, zoo = Path(official), Path(zoo)
names = names or sorted(path.parent.name for path in zoo.glob("*/config.json"))


def convert(source, outtype, out, path):
    """The digest of what it writes, or the last line that it says; and whether all of it came from `path`."""
    environment = {**os.environ, "NO_LOCAL_GGUF": "1", "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [python, official / "convert_hf_to_gguf.py", source, "--outtype", outtype, "--outfile", out]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return f"refused: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    return hashlib.sha256(out.read_bytes()).hexdigest()


same = other = refused = 0
with tempfile.TemporaryDirectory() as scratch:
    out = Path(scratch) / "model.gguf"
    for name in names:
        for outtype in ("f32", "q8_0"):
            found = convert(zoo / name, outtype, out, ours)
            wanted = convert(zoo / name, outtype, out, str(official / "gguf-py"))
            if wanted.startswith("refused"):
                refused += 1
                print(f"refused  {name} {outtype}: {wanted[:150]}", flush=True)
            elif found == wanted:
                same += 1
                print(f"same     {name} {outtype}", flush=True)
            else:
                other += 1
                print(f"OTHER    {name} {outtype}: {found[:150]}", flush=True)
print(f"{same} the same, {other} other, {refused} that the official package refuses too")
sys.exit(1 if other else 0)
