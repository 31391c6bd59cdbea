#!/usr/bin/env python3
"""The official package's own scripts and examples on our package in the place of the official one: the same output?

    interop/official_package/scripts.py OFFICIAL PYTHON OUR_PYTHON MODEL

`OFFICIAL` is the folder `gguf-py` of llama.cpp (it comes with the source package of `llama-cpp-python`), `PYTHON` an interpreter
with numpy, pyyaml and tqdm, and `OUR_PYTHON` one that also has `gguf_kit` under the name `gguf`
(`python -m gguf_kit.compat install`). `MODEL` is copied, never changed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

official, python, ours, model = map(os.path.abspath, sys.argv[1:])

#: Words, with the files that are written, and what is answered to questions.
RUNS = [
    (["examples/writer.py"], ["example.gguf"], ""),
    (["examples/reader.py", "m.gguf"], [], ""),
    (["gguf/scripts/gguf_dump.py", "m.gguf"], [], ""),
    (["gguf/scripts/gguf_dump.py", "--json", "m.gguf"], [], ""),
    (["gguf/scripts/gguf_dump.py", "--json-array", "--json", "m.gguf"], [], ""),
    (["gguf/scripts/gguf_dump.py", "--markdown", "m.gguf"], [], ""),
    (["gguf/scripts/gguf_dump.py", "--data-offset", "m.gguf"], [], ""),
    (["gguf/scripts/gguf_hash.py", "m.gguf"], [], ""),
    (["gguf/scripts/gguf_hash.py", "--no-layer", "m.gguf"], [], ""),
    (["gguf/scripts/gguf_set_metadata.py", "m.gguf", "llama.context_length", "99", "--force"], ["m.gguf"], ""),
    (["gguf/scripts/gguf_new_metadata.py", "m.gguf", "n.gguf", "--general-name", "X"], ["n.gguf"], ""),
    (["gguf/scripts/gguf_convert_endian.py", "m.gguf", "big"], ["m.gguf"], "YES\n"),
    (["gguf/scripts/gguf_dump.py", "missing.gguf"], [], ""),
]


def run(interpreter, scripts, words, path):
    """Exit code, standard output, and the folder in which it ran."""
    folder = Path(tempfile.mkdtemp())
    shutil.copy(model, folder / "m.gguf")
    environment = {**os.environ, "NO_LOCAL_GGUF": "1", "PYTHONPATH": path}
    command = [interpreter, Path(scripts) / words[0], *words[1:]]
    done = subprocess.run(command, cwd=folder, env=environment, input=answer, capture_output=True, text=True)
    return done.returncode, done.stdout, folder


differ = 0
with tempfile.TemporaryDirectory() as copies:
    # Beside the official package the examples would take that one.
    for folder in ("examples", "gguf/scripts"):
        shutil.copytree(Path(official) / folder, Path(copies) / folder)
    for words, files, answer in RUNS:
        code, said, here = run(ours, copies, words, "")
        wanted_code, wanted, there = run(python, official, words, official)
        same = (code, said) == (wanted_code, wanted)
        same &= all((here / file).read_bytes() == (there / file).read_bytes() for file in files)
        print("same " if same else "OTHER", code, " ".join(words))
        differ += not same
        shutil.rmtree(here)
        shutil.rmtree(there)
print(f"{len(RUNS) - differ} of {len(RUNS)} the same")
sys.exit(1 if differ else 0)
