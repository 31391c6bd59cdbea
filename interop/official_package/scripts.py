"""Runs the official package's scripts and examples with gguf-kit in place of the official package, and compares their output.

Usage: python3 interop/official_package/scripts.py OFFICIAL PYTHON OUR_PYTHON MODEL

OFFICIAL is the folder `gguf-py` of llama.cpp (in the source package of `llama-cpp-python`), PYTHON an interpreter with numpy, pyyaml
and tqdm, and OUR_PYTHON one that also has `gguf_kit` under the name `gguf` (`python -m gguf_kit.compat install`). MODEL is copied and
not changed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Arguments, written files, and standard input.
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


def run(interpreter, scripts, words, path, answer, model):
    """Returns exit code, standard output, and the working directory."""
    folder = Path(tempfile.mkdtemp())
    shutil.copy(model, folder / "m.gguf")
    environment = {**os.environ, "NO_LOCAL_GGUF": "1", "PYTHONPATH": path}
    command = [interpreter, Path(scripts) / words[0], *words[1:]]
    done = subprocess.run(command, cwd=folder, env=environment, input=answer, capture_output=True, text=True)
    return done.returncode, done.stdout, folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("official", "python", "our_python", "model"):
        parser.add_argument(name, type=os.path.abspath)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as copies:
        # Copied, because the examples import a package beside them.
        for folder in ("examples", "gguf/scripts"):
            shutil.copytree(Path(options.official) / folder, Path(copies) / folder)
        for words, files, answer in RUNS:
            code, output, ours = run(options.our_python, copies, words, "", answer, options.model)
            expected_code, expected, theirs = run(options.python, options.official, words, options.official, answer, options.model)
            same = (code, output) == (expected_code, expected)
            same &= all((ours / file).read_bytes() == (theirs / file).read_bytes() for file in files)
            print("same   " if same else "DIFFERS", code, " ".join(words))
            failed += not same
            shutil.rmtree(ours)
            shutil.rmtree(theirs)
    print(f"{len(RUNS) - failed} of {len(RUNS)} are the same")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
