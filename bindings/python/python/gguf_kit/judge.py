"""What models know of a text."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _native
from ._native import Imatrix
from ._types import Progress, Source

__all__ = ["Divergence", "Merged", "Perplexity", "divergence", "imatrix", "merge_parts", "perplexity"]


class Perplexity(NamedTuple):
    """How well a model predicts a text."""

    perplexity: float
    perplexity_error: float
    #: The mean negative logarithm of what the model thought of the token that came.
    mean_nll: float
    tokens: int
    windows: int


class Divergence(NamedTuple):
    """How far a model is from another, in nats per token."""

    perplexity: float
    perplexity_error: float
    mean_nll: float
    tokens: int
    windows: int
    divergence: float
    divergence_error: float
    divergence_median: float
    divergence_max: float
    #: How often both think the same token the most likely one.
    same_top: float
    reference_perplexity: float


_Path = Union[str, "os.PathLike[str]"]

#: Figures with the names of their models, or an importance matrix.
Merged = Union[List[Tuple[str, Perplexity]], List[Tuple[str, Divergence]], Imatrix]


def _kept(part: Optional[str], keep: Optional[_Path], resume: bool, force: bool) -> Dict[str, Any]:
    return {"part": part, "keep": keep, "resume": resume, "force": force}


def perplexity(
    source: Source,
    text: str,
    *,
    context: int = 512,
    windows: Optional[int] = None,
    stride: Optional[int] = None,
    exact: bool = True,
    part: Optional[str] = None,
    keep: Optional[_Path] = None,
    resume: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> Perplexity:
    """How well a model predicts a text, cut into windows of ``context`` tokens.

    ``part`` such as ``2/4`` reads one of several even shares of the windows, for several machines; what each
    window gave is kept in the file ``keep``, for :func:`merge_parts`. ``resume`` goes on where that file ends,
    ``force`` replaces it.

    >>> perplexity("tiny.gguf", "In the beginning " * 90, context=64, windows=1).windows
    1
    """
    kept = _kept(part, keep, resume, force)
    found = _native.perplexity(
        source, text, context, windows, stride, exact, kept, progress, threads
    )
    return Perplexity(**found)


def divergence(
    reference: Source,
    models: Sequence[Source],
    text: str,
    *,
    context: int = 512,
    windows: Optional[int] = None,
    exact: bool = True,
    part: Optional[str] = None,
    keep: Optional[_Path] = None,
    resume: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> List[Divergence]:
    """How far models are from the one that they were made of. Parts are as for :func:`perplexity`."""
    kept = _kept(part, keep, resume, force)
    found = _native.divergence(
        reference, list(models), text, context, windows, exact, kept, progress, threads
    )
    return [Divergence(**one) for one in found]


def imatrix(
    source: Source,
    text: str,
    *,
    context: int = 512,
    windows: Optional[int] = None,
    dataset: str = "",
    output: bool = False,
    part: Optional[str] = None,
    keep: Optional[_Path] = None,
    resume: bool = False,
    force: bool = False,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> Imatrix:
    """An importance matrix of a model for a text; with ``output`` of its last matrix too. Parts are as for
    :func:`perplexity`."""
    kept = _kept(part, keep, resume, force)
    return _native.collect_imatrix(
        source, text, context, windows, dataset, output, kept, progress, threads
    )


def merge_parts(paths: Sequence[_Path]) -> Merged:
    """What all parts of an evaluation make together, in whichever order: to the bit what one run gives.

    >>> text = "In the beginning " * 90
    >>> for part in ["1/2", "2/2"]:
    ...     found = perplexity("tiny.gguf", text, context=64, windows=2, part=part, keep=part[0] + ".part")
    >>> [(model, together)] = merge_parts(["2.part", "1.part"])
    >>> together == perplexity("tiny.gguf", text, context=64, windows=2)
    True
    """
    merged = _native.merge_parts([os.fspath(path) for path in paths])
    if isinstance(merged, Imatrix):
        return merged
    kind, models = merged
    if kind == "perplexity":
        return [(name, Perplexity(**found)) for name, found in models]
    return [(name, Divergence(**found)) for name, found in models]
