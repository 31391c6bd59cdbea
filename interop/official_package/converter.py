"""Runs llama.cpp's converter with gguf-kit in place of the official package, and compares the files.

Usage: python3 interop/official_package/converter.py PYTHON OFFICIAL OURS ZOO [NAME ...]

PYTHON is an interpreter with torch and transformers. OFFICIAL is llama.cpp's folder with `convert_hf_to_gguf.py` and `gguf-py` (in
the source package of `llama-cpp-python`). OURS are the folders, joined by `:`, with `gguf_kit` and with the package `gguf` that
`python -m gguf_kit.compat install` writes. ZOO is a folder of checkpoints.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def convert(options, source, outtype, out, path):
    """Returns the digest of the file, or the last line of the error message."""
    environment = {**os.environ, "NO_LOCAL_GGUF": "1", "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    script = options.official / "convert_hf_to_gguf.py"
    command = [options.python, script, source, "--outtype", outtype, "--outfile", out]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return f"fails: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    return hashlib.sha256(out.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("official", type=Path)
    parser.add_argument("ours")
    parser.add_argument("zoo", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    names = options.names or sorted(path.parent.name for path in options.zoo.glob("*/config.json"))
    same = differ = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "model.gguf"
        for name in names:
            for outtype in ("f32", "q8_0"):
                found = convert(options, options.zoo / name, outtype, out, options.ours)
                expected = convert(options, options.zoo / name, outtype, out, str(options.official / "gguf-py"))
                if expected.startswith("fails"):
                    failed += 1
                    print(f"fails    {name} {outtype}: {expected[:150]}", flush=True)
                elif found == expected:
                    same += 1
                    print(f"same     {name} {outtype}", flush=True)
                else:
                    differ += 1
                    print(f"DIFFERS  {name} {outtype}: {found[:150]}", flush=True)
    print(f"{same} are the same, {differ} differ, {failed} fail with the official package too")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
