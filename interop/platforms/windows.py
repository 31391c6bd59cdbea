"""Runs the Windows build of gguf under Wine beside the Linux build, and what only Windows has.

Usage: python3 interop/platforms/windows.py GGUF_BINARY GGUF_EXE CHECKPOINT_DIR [--whisper DIR] [--only WORD]

Part one runs the same commands in two folders, one per build: exit codes, standard output and every byte of every file must be equal.
Part two tries paths, names, locks, open files, kills and consoles of Windows. The script prints a line for each case, and fails if
one fails. It needs Wine and `x86_64-w64-mingw32-gcc`, which compiles a library that older versions of Wine lack; no display.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.platforms import commands, runner, windows_system
from interop.platforms.wine import Wine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linux", metavar="GGUF_BINARY")
    parser.add_argument("windows", metavar="GGUF_EXE")
    parser.add_argument("checkpoint", metavar="CHECKPOINT_DIR")
    parser.add_argument("--whisper", metavar="DIR", type=Path, help="checkpoint of a small Whisper model, for `transcribe`")
    parser.add_argument("--only", default="", help="cases whose name contains this word")
    parser.add_argument("--prefix", default="target/wine", help="Wine prefix, created if missing")
    options = parser.parse_args()
    wine = Wine(options.prefix)
    try:
        with tempfile.TemporaryDirectory() as work:
            paths = [Path(path).resolve() for path in (options.linux, options.windows, options.checkpoint)]
            whisper = options.whisper and options.whisper.resolve()
            cases = commands.cases(wine, *paths, Path(work), whisper) + windows_system.cases(wine, *paths, Path(work))
            passed = runner.run(cases, options.only)
    finally:
        wine.close()
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
