"""Scripts of the official package: each runs the ``gguf`` command under the name of the script.

``python -m gguf.scripts.gguf_dump model.gguf`` accepts the flags of the official script; ``docs/compatibility.md`` lists the
replacements. ``gguf view`` replaces the graphical editor.
"""

from __future__ import annotations

import sys

__all__ = ["run"]


def run(name: str) -> int:
    """Run a script with the arguments of this process and return the exit code."""
    from ...__main__ import main

    sys.argv[0] = name
    return main()
