"""Models made of others: edited, quantized, converted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _native
from ._types import Progress, Source

__all__ = ["Edited", "Made", "Recipe", "convert", "edit", "merge", "part_fingerprint", "quantize"]

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
    #: Round weights by what this text shows of the model: the same size, closer to the original, and slower.
    calibrate: Optional[_Path] = None
    #: Tokens of a window of that text.
    calibrate_ctx: int = 256
    #: Tokens of that text that are read at most.
    calibrate_tokens: int = 100_000
    #: The same by what ``gguf imatrix --moments`` has saved of a text.
    calibration_data: Optional[_Path] = None
    #: Without a text: search longer for scales and values of each block.
    effort: bool = False


class Made(NamedTuple):
    """Files that were written."""

    files: List[Path]
    #: What one should know: fall-backs, among others.
    notes: List[str]
    #: The types of all matrices of the last output, as the text of a recipe.
    recipe: str
    #: What all parts of one piece of work have in common (:func:`part_fingerprint`); ``None`` if no part was made.
    fingerprint: Optional[str] = None
    #: What was written to object stores: ``s3://bucket/key`` and the like.
    objects: Sequence[str] = ()


def _made(outputs: List[str], notes: List[str], recipe: str, fingerprint: Optional[str]) -> Made:
    near = [Path(output) for output in outputs if "://" not in output]
    far = [output for output in outputs if "://" in output]
    return Made(near, notes, recipe, fingerprint, far)


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
    naming convention, beside the model), or the objects: ``s3://bucket/key`` and the like. ``part`` such as ``2/4`` makes one of several even parts, for several
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
    return _made(*made)


def convert(
    source: _Path,
    outputs: Union[None, str, Mapping[Optional[str], Optional[_Path]]] = None,
    *,
    recipe: Recipe = Recipe(),
    vocab_only: bool = False,
    mmproj: bool = False,
    big_endian: bool = False,
    architecture: Optional[str] = None,
    model_name: Optional[str] = None,
    metadata: Optional[_Path] = None,
    base: Optional[_Path] = None,
    target_model_dir: Optional[_Path] = None,
    part: Optional[str] = None,
    resume: bool = False,
    force: bool = False,
    dry_run: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> Made:
    """Models of a checkpoint, an adapter, a lone file of weights, or a model from before GGUF.

    ``outputs`` and ``part`` are as for :func:`quantize`; ``None`` for the types of the source. With ``mmproj`` what sees
    or hears in the checkpoint, as a file that goes with the text model. ``base`` is the checkpoint of the model that an
    adapter is for, ``target_model_dir`` that of the model that a draft is for.
    """
    wanted: Mapping[Any, Any]
    wanted = {outputs: None} if outputs is None or isinstance(outputs, str) else outputs
    made = _native.convert(
        source,
        list(wanted.items()),
        _given(recipe),
        vocab_only,
        mmproj,
        big_endian,
        architecture,
        model_name,
        metadata,
        base,
        target_model_dir,
        part,
        resume,
        force,
        dry_run,
        progress,
        threads,
    )
    return _made(*made)


def part_fingerprint(location: Source) -> Optional[str]:
    """What a file, near or far, has in common with the other parts of the same work; ``None`` if it is no part.

    >>> made = quantize("tiny.gguf", {"Q8_0": "eight.gguf"}, part="2/3", force=True)
    >>> part_fingerprint("eight-00002-of-00003.gguf") == made.fingerprint
    True
    """
    return _native.part_fingerprint(location)


def merge(
    source: Source,
    output: _Path,
    *,
    delete_shards: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
) -> None:
    """One file of the shards of a model: of parts the bytes that one run would have written.

    ``delete_shards`` deletes them once every byte of them is found in the output on disk.

    >>> for part in ["1/2", "2/2"]:
    ...     made = quantize("tiny.gguf", {"Q8_0": "eight.gguf"}, part=part, force=True)
    >>> merge("eight-00001-of-00002.gguf", "eight.gguf")
    >>> Path("eight.gguf").exists()
    True
    """
    _native.merge(source, output, delete_shards, force, progress)
