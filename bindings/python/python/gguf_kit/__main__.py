"""The ``gguf`` command, also available as ``python -m gguf_kit``."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line and return the exit code."""
    from gguf_kit import _native

    # Python would handle Ctrl-C only after the native command has returned.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = sys.argv[:]
    if words[0].endswith("__main__.py"):
        words[0] = "gguf"
    return _native.command(words, [sys.executable, "-m", "gguf_kit"])


if __name__ == "__main__":
    sys.exit(main())
