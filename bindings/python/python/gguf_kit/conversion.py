"""Quantization, conversion and merging of models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _native
from ._types import PathLike, Progress, Source

__all__ = ["Recipe", "WriteResult", "convert", "merge", "part_fingerprint", "quantize"]


class Recipe(NamedTuple):
    """Types of tensors that override a quantization type, and quantization options.

    Examples
    --------
    >>> Recipe(tensor_types=["ffn_down=Q6_K"]).pure
    False
    """

    #: Quantize all tensors to the default type of the quantization type.
    pure: bool = False
    #: Do not quantize ``output.weight``.
    leave_output_tensor: bool = False
    output_tensor_type: Optional[str] = None
    token_embedding_type: Optional[str] = None
    #: ``REGEX=TYPE`` entries; the first that matches the name of a tensor applies.
    tensor_types: Sequence[str] = ()
    #: The text of a recipe: one ``REGEX=TYPE`` entry per line, such as ``WriteResult.recipe``.
    recipe: Optional[str] = None
    #: Importance matrix file.
    imatrix: Optional[PathLike] = None
    #: Allow quantized input tensors.
    allow_requantize: bool = False
    #: Text file for GPTQ calibration, or ``"bundled"`` for the text of gguf-kit: smaller error at the same size, but slower.
    #: Several have equal shares of the tokens.
    calibrate: Union[None, PathLike, Sequence[PathLike]] = None
    #: Context size of the calibration chunks in tokens.
    calibrate_ctx: int = 256
    #: Maximum number of calibration tokens.
    calibrate_tokens: int = 100_000
    #: Calibration statistics saved by ``gguf imatrix``, instead of a text.
    calibration_data: Optional[PathLike] = None
    #: Search longer for the scales and quants of each block, without calibration text.
    effort: bool = False


class WriteResult(NamedTuple):
    """Written output files."""

    files: List[Path]
    #: Notes, such as fallback types.
    notes: List[str]
    #: The types of all matrices of the last output, as the text of a recipe.
    recipe: str
    #: Fingerprint that all parts of the job share (:func:`part_fingerprint`); ``None`` if the outputs are not parts.
    fingerprint: Optional[str] = None
    #: Outputs in object stores, such as ``s3://bucket/key``.
    objects: Sequence[str] = ()


def _write_result(
    outputs: List[str], notes: List[str], recipe: str, fingerprint: Optional[str]
) -> WriteResult:
    files = [Path(output) for output in outputs if "://" not in output]
    objects = [output for output in outputs if "://" in output]
    return WriteResult(files, notes, recipe, fingerprint, objects)


def native_recipe(recipe: Recipe) -> Dict[str, Any]:
    """Return the fields of a recipe, with lists of tensor types and calibration texts."""
    texts = recipe.calibrate
    if texts is None:
        texts = []
    elif isinstance(texts, (str, os.PathLike)):
        texts = [texts]
    return {**recipe._asdict(), "tensor_types": list(recipe.tensor_types), "calibrate": list(texts)}


def quantize(
    source: Source,
    outputs: Union[str, Mapping[str, Optional[PathLike]]],
    *,
    recipe: Recipe = Recipe(),
    part: Optional[str] = None,
    resume: bool = False,
    force: bool = False,
    dry_run: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> WriteResult:
    """Quantize a model to one or more outputs in one pass.

    Outputs are renamed to their final names when they are complete.

    Parameters
    ----------
    source : path-like or Model
        The model to quantize.
    outputs : str or mapping
        A quantization type, or a mapping of quantization types to output files or objects (``s3://bucket/key``).
        ``None`` as the file derives the name from the naming convention, beside the source.
    recipe : Recipe, optional
        Types of tensors and quantization options.
    part : str, optional
        Write one of several even parts, such as ``2/4``, to distribute the job over machines.
    resume : bool, optional
        Continue an interrupted job.
    force : bool, optional
        Overwrite existing outputs.
    dry_run : bool, optional
        Plan without writing.
    progress : callable, optional
        Progress callback.
    threads : int, optional
        Number of threads.

    Returns
    -------
    WriteResult

    Examples
    --------
    >>> result = quantize("tiny.gguf", {"Q8_0": "small.gguf"}, force=True)
    >>> result.files[0].name
    'small.gguf'
    """
    targets = {outputs: None} if isinstance(outputs, str) else dict(outputs)
    items: List[Any] = list(targets.items())
    result = _native.quantize(
        source, items, native_recipe(recipe), part, resume, force, dry_run, progress, threads
    )
    return _write_result(*result)


def convert(
    source: PathLike,
    outputs: Union[None, str, Mapping[Optional[str], Optional[PathLike]]] = None,
    *,
    recipe: Recipe = Recipe(),
    vocab_only: bool = False,
    mmproj: bool = False,
    big_endian: bool = False,
    architecture: Optional[str] = None,
    model_name: Optional[str] = None,
    metadata: Optional[PathLike] = None,
    base: Optional[PathLike] = None,
    target_model_dir: Optional[PathLike] = None,
    part: Optional[str] = None,
    resume: bool = False,
    force: bool = False,
    dry_run: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> WriteResult:
    """Convert a checkpoint, an adapter, a single weight file or a legacy GGML file.

    Parameters
    ----------
    source : path-like
        The checkpoint.
    outputs : str or mapping, optional
        Outputs as for :func:`quantize`; ``None`` as the type keeps the types of the source.
    recipe : Recipe, optional
        Types of tensors and quantization options.
    vocab_only : bool, optional
        Convert the vocabulary only.
    mmproj : bool, optional
        Convert the vision or audio encoder to a multimodal projector file (mmproj).
    big_endian : bool, optional
        Write big-endian files.
    architecture, model_name : str, optional
        Override the architecture and the name of the model.
    metadata : path-like, optional
        JSON file that overrides metadata.
    base : path-like, optional
        Checkpoint of the base model of an adapter.
    target_model_dir : path-like, optional
        Checkpoint of the target model of a draft model.
    part, resume, force, dry_run, progress, threads
        As for :func:`quantize`.

    Returns
    -------
    WriteResult
    """
    targets: Mapping[Any, Any]
    targets = {outputs: None} if outputs is None or isinstance(outputs, str) else outputs
    result = _native.convert(
        source,
        list(targets.items()),
        native_recipe(recipe),
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
    return _write_result(*result)


def part_fingerprint(location: Source) -> Optional[str]:
    """Return the fingerprint that all parts of a job share.

    Parameters
    ----------
    location : path-like or Model
        A local or remote file.

    Returns
    -------
    str or None
        ``None`` if the file is not a part.

    Examples
    --------
    >>> result = quantize("tiny.gguf", {"Q8_0": "eight.gguf"}, part="2/3", force=True)
    >>> part_fingerprint("eight-00002-of-00003.gguf") == result.fingerprint
    True
    """
    return _native.part_fingerprint(location)


def merge(
    source: Source,
    output: PathLike,
    *,
    delete_shards: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
) -> None:
    """Merge the shards of a model into one file.

    Merged parts of a job are byte-identical to the output of a single run.

    Parameters
    ----------
    source : path-like or Model
        Any shard of the model.
    output : path-like
        The file to write.
    delete_shards : bool, optional
        Delete the shards after the output on disk has been compared with them.
    force : bool, optional
        Overwrite an existing output.
    progress : callable, optional
        Progress callback.

    Examples
    --------
    >>> for part in ["1/2", "2/2"]:
    ...     result = quantize("tiny.gguf", {"Q8_0": "eight.gguf"}, part=part, force=True)
    >>> merge("eight-00001-of-00002.gguf", "eight.gguf")
    >>> Path("eight.gguf").exists()
    True
    """
    _native.merge(source, output, delete_shards, force, progress)
