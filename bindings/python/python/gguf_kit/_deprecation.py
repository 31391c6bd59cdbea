"""Deprecated names."""

from __future__ import annotations

import warnings
from typing import Optional

__all__ = ["chunk_limit", "warn_renamed"]


def warn_renamed(old: str, new: str) -> None:
    """Warn that a name is deprecated."""
    warnings.warn(f"`{old}` is deprecated; use `{new}`", DeprecationWarning, stacklevel=3)


def chunk_limit(chunks: Optional[int], windows: Optional[int]) -> Optional[int]:
    """Return the limit of chunks. ``windows`` is the deprecated name of the parameter."""
    if windows is None:
        return chunks
    if chunks is not None:
        raise TypeError("expected either chunks or windows")
    warnings.warn("`windows` is deprecated; use `chunks`", DeprecationWarning, stacklevel=3)
    return windows
