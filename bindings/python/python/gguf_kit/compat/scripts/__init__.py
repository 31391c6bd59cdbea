"""The scripts of the official package: each is the command ``gguf`` under the script's name.

``python -m gguf.scripts.gguf_dump model.gguf`` works as there, with the same flags; ``docs/old-names.md`` lists what becomes
of each. The editor with windows is ``gguf view``.
"""

from __future__ import annotations

import sys

__all__ = ["run"]


def run(name: str) -> int:
    """Does the work of the script with the words of this process, and answers with the exit code."""
    from ...__main__ import main

    sys.argv[0] = name
    return main()
