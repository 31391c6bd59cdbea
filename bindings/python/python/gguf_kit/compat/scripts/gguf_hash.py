"""``gguf-hash``."""

from __future__ import annotations

import sys

from gguf_kit.compat.scripts import run


def main() -> int:
    """Run the command line and return the exit code."""
    return run("gguf-hash")


if __name__ == "__main__":
    sys.exit(main())
