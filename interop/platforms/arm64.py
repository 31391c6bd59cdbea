"""Runs the static ARM64 build of gguf in qemu beside the build for this machine.

Usage: python3 interop/platforms/arm64.py GGUF_BINARY GGUF_ARM64 CHECKPOINT_DIR [--whisper DIR] [--only WORD]

Exit codes, output and every byte of every file must be equal, except for sums over a run of a model, which the two processors add in
another order. It needs `qemu-aarch64`, and that the system starts programs for ARM64 with it (binfmt_misc), since gguf starts itself
to render chat templates.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.platforms import commands, runner


class Emulator:
    """Programs that the system runs in an emulator by itself."""

    @staticmethod
    def run(program, *words, cwd=None, stdin=b"", env=None, timeout=600):
        command = [str(program), *map(str, words)]
        return subprocess.run(command, cwd=cwd, input=stdin, env=os.environ | (env or {}), capture_output=True, timeout=timeout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("here", metavar="GGUF_BINARY")
    parser.add_argument("arm64", metavar="GGUF_ARM64")
    parser.add_argument("checkpoint", metavar="CHECKPOINT_DIR")
    parser.add_argument("--whisper", metavar="DIR", type=Path, help="checkpoint of a small Whisper model, for `transcribe`")
    parser.add_argument("--only", default="", help="cases whose name contains this word")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        paths = [Path(path).resolve() for path in (options.here, options.arm64, options.checkpoint)]
        whisper = options.whisper and options.whisper.resolve()
        passed = runner.run(commands.cases(Emulator, *paths, Path(work), whisper, sums_differ=True), options.only)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
