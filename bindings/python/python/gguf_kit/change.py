"""Models made of others: edited, quantized, converted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _native
from ._types import Progress, Source

__all__ = ["Edited", "Made", "Recipe", "convert", "edit", "quantize"]

_Path = Union[str, "os.PathLike[str]"]


class Recipe(NamedTuple):
    """What decides the types of tensors, beside the name of a mix.

    >>> Recipe(tensor_types=["ffn_down=Q6_K"]).pure
    False
    """

    #: Give all tensors the default type of the mix.
    pure: bool = False
    #: Keep ``output.weight`` as it is.
    leave_output_tensor: bool = False
    output_tensor_type: Optional[str] = None
    token_embedding_type: Optional[str] = None
    #: ``REGEX=TYPE``; the first that is found in the name of a tensor counts.
    tensor_types: Sequence[str] = ()
    #: The text of a recipe: the same, one on a line, as ``Made.recipe`` has it.
    recipe: Optional[str] = None
    #: A file with an importance matrix.
    imatrix: Optional[_Path] = None
    #: Quantize again what is quantized already.
    allow_requantize: bool = False


class Made(NamedTuple):
    """Files that were written."""

    files: List[Path]
    #: What one should know: fall-backs, among others.
    notes: List[str]
    #: The types of all matrices of the last output, as the text of a recipe.
    recipe: str


class Edited(NamedTuple):
    """A file that was changed."""

    file: Path
    #: ``unchanged``, ``in place`` or ``rebuilt``.
    how: str
    #: What changed: a document for each key.
    changes: Any


def _given(recipe: Recipe) -> Dict[str, Any]:
    return {**recipe._asdict(), "tensor_types": list(recipe.tensor_types)}


def edit(
    path: _Path,
    *,
    set: Optional[Mapping[str, Any]] = None,
    remove: Sequence[str] = (),
    rename: Optional[Mapping[str, str]] = None,
    rename_tensor: Optional[Mapping[str, str]] = None,
    output: Optional[_Path] = None,
    force: bool = False,
    dry_run: bool = False,
    progress: Optional[Progress] = None,
) -> Edited:
    """Changes keys and names of a file itself, or in a new one (``output``).

    A value has the type that its key has in the file or by the standard; ``(type, value)`` says another, such as
    ``("u64", 3)`` or ``("f32[]", [1, 2])``.

    >>> edit("tiny.gguf", set={"general.name": "Tiny"}, dry_run=True).how
    'unchanged'
    """
    given = [(key, *_typed(value)) for key, value in (set or {}).items()]
    done = _native.edit(
        path,
        given,
        list(remove),
        list((rename or {}).items()),
        list((rename_tensor or {}).items()),
        output,
        force,
        dry_run,
        progress,
    )
    return Edited(*done)


def _typed(value: Any) -> Tuple[Optional[str], str]:
    if isinstance(value, tuple):
        kind, value = value
        return kind, _text(value)
    return ("str" if isinstance(value, str) else None), _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    plain = value.tolist() if hasattr(value, "tolist") else value
    return json.dumps(plain)


def quantize(
    source: Source,
    outputs: Union[str, Mapping[str, Optional[_Path]]],
    *,
    recipe: Recipe = Recipe(),
    part: Optional[str] = None,
    resume: bool = False,
    force: bool = False,
    dry_run: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> Made:
    """Smaller models of a model, all in one pass over it.

    ``outputs`` is the name of a mix or type, or names with the files that they go to (``None`` for the name by the
    naming convention, beside the model). ``part`` such as ``2/4`` makes one of several even parts, for several
    machines. Nothing is replaced without ``force``; outputs get their names when they are complete.

    >>> made = quantize("tiny.gguf", {"Q8_0": "small.gguf"}, force=True)
    >>> made.files[0].name
    'small.gguf'
    """
    wanted = {outputs: None} if isinstance(outputs, str) else dict(outputs)
    named: List[Any] = list(wanted.items())
    made = _native.quantize(
        source, named, _given(recipe), part, resume, force, dry_run, progress, threads
    )
    return Made(*made)


def convert(
    source: _Path,
    outputs: Union[None, str, Mapping[Optional[str], Optional[_Path]]] = None,
    *,
    recipe: Recipe = Recipe(),
    vocab_only: bool = False,
    big_endian: bool = False,
    architecture: Optional[str] = None,
    model_name: Optional[str] = None,
    metadata: Optional[_Path] = None,
    base: Optional[_Path] = None,
    resume: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> Made:
    """Models of a checkpoint, an adapter, a lone file of weights, or a model from before GGUF.

    ``outputs`` is as for :func:`quantize`; ``None`` for the types of the source.
    """
    wanted: Mapping[Any, Any]
    wanted = {outputs: None} if outputs is None or isinstance(outputs, str) else outputs
    files, notes = _native.convert(
        source,
        list(wanted.items()),
        _given(recipe),
        vocab_only,
        big_endian,
        architecture,
        model_name,
        metadata,
        base,
        resume,
        force,
        progress,
        threads,
    )
    return Made(files, notes, "")
