"""The command ``gguf``: ``python -m gguf_kit`` is the same."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Does what the command line says, and answers with the exit code."""
    from gguf_kit import _native

    # Python would keep Ctrl-C for itself, and look at it when the command is over.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = sys.argv[:]
    if words[0].endswith("__main__.py"):
        words[0] = "gguf"
    return _native.command(words, [sys.executable, "-m", "gguf_kit"])


if __name__ == "__main__":
    sys.exit(main())
