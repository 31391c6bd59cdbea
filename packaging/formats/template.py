"""Templates with ``@NAME@`` for values."""

from __future__ import annotations

import re

from declaration import PACKAGING


def render(name: str, values: dict[str, str]) -> str:
    """Text of a template with its values. A name without a value is an error."""
    text = (PACKAGING / "templates" / name).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], text)
