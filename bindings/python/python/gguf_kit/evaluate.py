"""Evaluation: perplexity, KL divergence, importance matrices."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _native
from ._deprecation import chunk_limit, warn_renamed
from ._native import Imatrix
from ._types import PathLike, Progress, Source

__all__ = ["KLDivergence", "MergedParts", "Perplexity", "imatrix", "kl_divergence", "merge_parts", "perplexity"]


class Perplexity(NamedTuple):
    """Perplexity of a model on a text."""

    perplexity: float
    #: Standard error of the perplexity.
    perplexity_error: float
    #: Mean negative log-likelihood per token.
    mean_nll: float
    #: Number of evaluated tokens.
    tokens: int
    #: Number of chunks.
    chunks: int

    @property
    def windows(self) -> int:
        """Deprecated alias of ``chunks``."""
        warn_renamed("windows", "chunks")
        return self.chunks


class KLDivergence(NamedTuple):
    """KL divergence (KLD) from a reference model in nats per token, and the perplexity of the model."""

    perplexity: float
    #: Standard error of the perplexity.
    perplexity_error: float
    #: Mean negative log-likelihood per token.
    mean_nll: float
    #: Number of evaluated tokens.
    tokens: int
    #: Number of chunks.
    chunks: int
    mean_kld: float
    #: Standard error of the mean KLD.
    mean_kld_error: float
    median_kld: float
    max_kld: float
    #: Fraction of tokens with the same top-1 prediction as the reference model.
    top1_agreement: float
    reference_perplexity: float

    @property
    def windows(self) -> int:
        """Deprecated alias of ``chunks``."""
        warn_renamed("windows", "chunks")
        return self.chunks

    @property
    def divergence(self) -> float:
        """Deprecated alias of ``mean_kld``."""
        warn_renamed("divergence", "mean_kld")
        return self.mean_kld

    @property
    def divergence_error(self) -> float:
        """Deprecated alias of ``mean_kld_error``."""
        warn_renamed("divergence_error", "mean_kld_error")
        return self.mean_kld_error

    @property
    def divergence_median(self) -> float:
        """Deprecated alias of ``median_kld``."""
        warn_renamed("divergence_median", "median_kld")
        return self.median_kld

    @property
    def divergence_max(self) -> float:
        """Deprecated alias of ``max_kld``."""
        warn_renamed("divergence_max", "max_kld")
        return self.max_kld

    @property
    def same_top(self) -> float:
        """Deprecated alias of ``top1_agreement``."""
        warn_renamed("same_top", "top1_agreement")
        return self.top1_agreement


#: Results by model, or an importance matrix.
MergedParts = Union[List[Tuple[str, Perplexity]], List[Tuple[str, KLDivergence]], Imatrix]


def _part_options(
    part: Optional[str], keep: Optional[PathLike], resume: bool, force: bool
) -> Dict[str, Any]:
    return {"part": part, "keep": keep, "resume": resume, "force": force}


def perplexity(
    source: Source,
    text: str,
    *,
    context: int = 512,
    chunks: Optional[int] = None,
    stride: Optional[int] = None,
    exact: bool = True,
    part: Optional[str] = None,
    keep: Optional[PathLike] = None,
    resume: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
    windows: Optional[int] = None,
) -> Perplexity:
    """Measure the perplexity of a model on a text.

    Parameters
    ----------
    source : path-like or Model
        The model.
    text : str
        The text, which is split into chunks.
    context : int, optional
        Context size of a chunk in tokens.
    chunks : int, optional
        Maximum number of chunks.
    stride : int, optional
        Distance between the starts of chunks in tokens.
    exact : bool, optional
        Compute in F32 instead of with 8-bit activations.
    part : str, optional
        Evaluate one of several even parts of the chunks, such as ``2/4``, to distribute the job over machines.
    keep : path-like, optional
        File that stores the results of each chunk, for :func:`merge_parts`.
    resume : bool, optional
        Continue after the chunks in ``keep``.
    force : bool, optional
        Overwrite ``keep``.
    progress : callable, optional
        Progress callback.
    threads : int, optional
        Number of threads.
    windows : int, optional
        Deprecated alias of ``chunks``.

    Returns
    -------
    Perplexity

    Examples
    --------
    >>> perplexity("tiny.gguf", "In the beginning " * 90, context=64, chunks=1).chunks
    1
    """
    chunks = chunk_limit(chunks, windows)
    options = _part_options(part, keep, resume, force)
    fields = _native.perplexity(
        source, text, context, chunks, stride, exact, options, progress, threads
    )
    return Perplexity(**fields)


def kl_divergence(
    reference: Source,
    models: Sequence[Source],
    text: str,
    *,
    context: int = 512,
    chunks: Optional[int] = None,
    exact: bool = True,
    part: Optional[str] = None,
    keep: Optional[PathLike] = None,
    resume: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
    windows: Optional[int] = None,
) -> List[KLDivergence]:
    """Measure the KL divergence of models from a reference model.

    Parameters
    ----------
    reference : path-like or Model
        The reference model, usually the unquantized one.
    models : sequence of path-like or Model
        The models.
    text : str
        The text, which is split into chunks.
    context, chunks, exact, part, keep, resume, force, progress, threads, windows
        As for :func:`perplexity`.

    Returns
    -------
    list of KLDivergence
        One result per model.
    """
    chunks = chunk_limit(chunks, windows)
    options = _part_options(part, keep, resume, force)
    results = _native.divergence(
        reference, list(models), text, context, chunks, exact, options, progress, threads
    )
    return [KLDivergence(**fields) for fields in results]


def imatrix(
    source: Source,
    text: str,
    *,
    context: int = 512,
    chunks: Optional[int] = None,
    dataset: str = "",
    output: bool = False,
    part: Optional[str] = None,
    keep: Optional[PathLike] = None,
    resume: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
    windows: Optional[int] = None,
) -> Imatrix:
    """Collect an importance matrix on a text.

    Parameters
    ----------
    source : path-like or Model
        The model.
    text : str
        The calibration text, which is split into chunks.
    dataset : str, optional
        Name of the dataset, stored in the matrix.
    output : bool, optional
        Collect statistics of ``output.weight`` too.
    context, chunks, part, keep, resume, force, progress, threads, windows
        As for :func:`perplexity`.

    Returns
    -------
    Imatrix
    """
    chunks = chunk_limit(chunks, windows)
    options = _part_options(part, keep, resume, force)
    return _native.collect_imatrix(
        source, text, context, chunks, dataset, output, options, progress, threads
    )


def merge_parts(paths: Sequence[PathLike]) -> MergedParts:
    """Merge the parts of an evaluation.

    Parameters
    ----------
    paths : sequence of path-like
        The files of all parts, in any order.

    Returns
    -------
    list of (str, Perplexity) or list of (str, KLDivergence) or Imatrix
        The result, bit-exact to that of a single run.

    Examples
    --------
    >>> text = "In the beginning " * 90
    >>> for part in ["1/2", "2/2"]:
    ...     result = perplexity("tiny.gguf", text, context=64, chunks=2, part=part, keep=part[0] + ".part")
    >>> [(model, merged)] = merge_parts(["2.part", "1.part"])
    >>> merged == perplexity("tiny.gguf", text, context=64, chunks=2)
    True
    """
    merged = _native.merge_parts([os.fspath(path) for path in paths])
    if isinstance(merged, Imatrix):
        return merged
    metric, models = merged
    if metric == "perplexity":
        return [(name, Perplexity(**fields)) for name, fields in models]
    return [(name, KLDivergence(**fields)) for name, fields in models]
