"""Findings, digests and comparison of models."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from . import _native
from ._types import PathLike, Progress, Source

__all__ = ["Digest", "Finding", "check", "diff", "hash"]


class Finding(NamedTuple):
    """A problem found by :func:`check`."""

    #: ``error``, ``warning`` or ``info``.
    severity: str
    #: Stable code of the problem.
    code: str
    message: str
    offset: Optional[int]
    key: Optional[str]
    tensor: Optional[str]
    #: How to fix it; may be empty.
    help: str


class Digest(NamedTuple):
    """A digest of a tensor or of all tensor data."""

    algorithm: str
    #: ``None`` for the whole model.
    tensor: Optional[str]
    digest: str


def check(
    source: Source,
    *,
    data: bool = False,
    strict: bool = False,
    tokenizer_against: Optional[PathLike] = None,
    with_: Optional[PathLike] = None,
    scan: bool = False,
    template_of: Optional[str] = None,
    progress: Optional[Progress] = None,
) -> List[Finding]:
    """Check a model.

    An invalid model does not raise an exception, but a file that cannot be read does.

    Parameters
    ----------
    source : path-like or Model
        The model.
    data : bool, optional
        Check the tensor data too.
    strict : bool, optional
        Treat warnings as errors.
    tokenizer_against : path-like, optional
        Checkpoint whose tokenizer is the reference.
    with_ : path-like, optional
        Companion file of the model, such as its multimodal projector; both are checked together.
    scan : bool, optional
        Look for manipulation of the templates, the vocabulary and the files of a checkpoint.
    template_of : str, optional
        Base model whose chat template is compared with that of the model. Only with `scan`.
    progress : callable, optional
        Progress callback.

    Returns
    -------
    list of Finding

    Examples
    --------
    >>> [finding.code for finding in check("tiny.gguf") if finding.severity == "error"]
    []
    """
    findings = _native.check(source, data, strict, tokenizer_against, with_, scan, template_of, progress)
    return [Finding(**{name: finding[name] for name in Finding._fields}) for finding in findings]


def hash(
    source: Source,
    algorithms: Sequence[str] = ("xxh64",),
    *,
    tensors: bool = True,
    progress: Optional[Progress] = None,
) -> List[Digest]:
    """Compute digests of the tensor data.

    Parameters
    ----------
    source : path-like or Model
        The model.
    algorithms : sequence of str, optional
        ``xxh64``, ``sha1``, ``sha256`` or ``uuid``.
    tensors : bool, optional
        Include a digest of each tensor.
    progress : callable, optional
        Progress callback.

    Returns
    -------
    list of Digest

    Examples
    --------
    >>> [(digest.tensor, len(digest.digest)) for digest in hash("tiny.gguf", ["sha256"], tensors=False)]
    [(None, 64)]
    """
    digests = _native.hash(source, list(algorithms), tensors, progress)
    return [Digest(*digest) for digest in digests]


def diff(a: Source, b: Source, *, progress: Optional[Progress] = None) -> Dict[str, Any]:
    """Compare two models.

    Parameters
    ----------
    a, b : path-like or Model
        The models.
    progress : callable, optional
        Progress callback.

    Returns
    -------
    dict
        The document of ``gguf diff --json`` (``docs/json.md``).

    Examples
    --------
    >>> diff("tiny.gguf", "tiny.gguf")["verdict"]
    'same tensors and metadata'
    """
    document: Dict[str, Any] = _native.diff(a, b, progress)
    return document
