"""What models know of a text."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

from . import _native
from ._native import Imatrix
from ._types import Progress, Source

__all__ = ["Divergence", "Perplexity", "divergence", "imatrix", "perplexity"]


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


def perplexity(
    source: Source,
    text: str,
    *,
    context: int = 512,
    windows: Optional[int] = None,
    stride: Optional[int] = None,
    exact: bool = True,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> Perplexity:
    """How well a model predicts a text, cut into windows of ``context`` tokens.

    >>> perplexity("tiny.gguf", "In the beginning " * 90, context=64, windows=1).windows
    1
    """
    found = _native.perplexity(source, text, context, windows, stride, exact, progress, threads)
    return Perplexity(**found)


def divergence(
    reference: Source,
    models: Sequence[Source],
    text: str,
    *,
    context: int = 512,
    windows: Optional[int] = None,
    exact: bool = True,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> List[Divergence]:
    """How far models are from the one that they were made of."""
    found = _native.divergence(
        reference, list(models), text, context, windows, exact, progress, threads
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
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> Imatrix:
    """An importance matrix of a model for a text; with ``output`` of its last matrix too."""
    return _native.collect_imatrix(
        source, text, context, windows, dataset, output, progress, threads
    )
