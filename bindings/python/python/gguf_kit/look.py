"""What is wrong with a model, what its digests are, what two models differ by."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from . import _native
from ._types import Progress, Source

__all__ = ["Digest", "Finding", "check", "diff", "hash"]


class Finding(NamedTuple):
    """One thing that a rule found."""

    #: ``error``, ``warning`` or ``info``.
    severity: str
    #: The stable name of this kind of fault.
    code: str
    message: str
    offset: Optional[int]
    key: Optional[str]
    tensor: Optional[str]
    #: What to do about it; may be empty.
    help: str


class Digest(NamedTuple):
    """A digest of a tensor, or of the data of the whole model."""

    algorithm: str
    #: ``None`` for the whole model.
    tensor: Optional[str]
    digest: str


def check(
    source: Source,
    *,
    data: bool = False,
    strict: bool = False,
    tokenizer_against: Optional["os.PathLike[str]"] = None,
    with_: Optional["os.PathLike[str]"] = None,
    progress: Optional[Progress] = None,
) -> List[Finding]:
    """Everything that is wrong or odd about a model.

    With ``data`` all tensor data are looked at too; with ``strict`` warnings are errors; ``with_`` is the file that
    goes with the model, such as what sees for it, and is looked at together with it. A model that is at fault is
    no exception here, one that cannot be read is.

    >>> [finding.code for finding in check("tiny.gguf") if finding.severity == "error"]
    []
    """
    found = _native.check(source, data, strict, tokenizer_against, with_, progress)
    return [Finding(**{name: one[name] for name in Finding._fields}) for one in found]


def hash(
    source: Source,
    algorithms: Sequence[str] = ("xxh64",),
    *,
    tensors: bool = True,
    progress: Optional[Progress] = None,
) -> List[Digest]:
    """Digests of the tensor data: ``xxh64``, ``sha1``, ``sha256``, ``uuid``.

    >>> [(one.tensor, len(one.digest)) for one in hash("tiny.gguf", ["sha256"], tensors=False)]
    [(None, 64)]
    """
    return [Digest(*one) for one in _native.hash(source, list(algorithms), tensors, progress)]


def diff(a: Source, b: Source, *, progress: Optional[Progress] = None) -> Dict[str, Any]:
    """What two models differ by, in the shape of ``gguf diff --json`` (``docs/json.md``).

    >>> diff("tiny.gguf", "tiny.gguf")["verdict"]
    'same tensors and metadata'
    """
    found: Dict[str, Any] = _native.diff(a, b, progress)
    return found
