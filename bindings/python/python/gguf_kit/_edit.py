"""Editing of metadata and tensor names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _native
from ._deprecation import warn_renamed
from ._types import PathLike, Progress

__all__ = ["EditResult", "edit"]


class EditResult(NamedTuple):
    """An edited file."""

    file: Path
    #: ``unchanged``, ``in place`` or ``rebuilt``.
    outcome: str
    #: The changed keys: dicts with ``key``, and ``a`` (before) and ``b`` (after), each a dict with ``type`` and
    #: ``value``, or None.
    changes: Any

    @property
    def how(self) -> str:
        """Deprecated alias of ``outcome``."""
        warn_renamed("how", "outcome")
        return self.outcome


def edit(
    path: PathLike,
    *,
    set: Optional[Mapping[str, Any]] = None,
    remove: Sequence[str] = (),
    rename: Optional[Mapping[str, str]] = None,
    rename_tensor: Optional[Mapping[str, str]] = None,
    output: Optional[PathLike] = None,
    force: bool = False,
    dry_run: bool = False,
    progress: Optional[Progress] = None,
) -> EditResult:
    """Edit metadata and tensor names of a file.

    Parameters
    ----------
    path : path-like
        The file to edit.
    set : mapping, optional
        New values by key. A value has the type of the existing or the standard key; a tuple ``(type, value)`` sets
        another type, such as ``("u64", 3)`` or ``("f32[]", [1, 2])``.
    remove : sequence of str, optional
        Keys to remove.
    rename, rename_tensor : mapping, optional
        New names of keys and tensors.
    output : path-like, optional
        Write an edited copy instead of editing the file itself.
    force : bool, optional
        Overwrite an existing output.
    dry_run : bool, optional
        Return the changes without writing.
    progress : callable, optional
        Progress callback.

    Returns
    -------
    EditResult

    Examples
    --------
    >>> edit("tiny.gguf", set={"general.name": "Tiny"}, dry_run=True).outcome
    'unchanged'
    """
    values = [(key, *_typed(value)) for key, value in (set or {}).items()]
    result = _native.edit(
        path,
        values,
        list(remove),
        list((rename or {}).items()),
        list((rename_tensor or {}).items()),
        output,
        force,
        dry_run,
        progress,
    )
    return EditResult(*result)


def _typed(value: Any) -> Tuple[Optional[str], str]:
    if isinstance(value, tuple):
        kind, value = value
        return kind, _text(value)
    return ("str" if isinstance(value, str) else None), _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value.tolist() if hasattr(value, "tolist") else value)
