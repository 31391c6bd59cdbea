"""Numbers to the bytes of a tensor type and back, for every type.

>>> import numpy as np
>>> rows = np.linspace(-1, 1, 512, dtype=np.float32).reshape(2, 256)
>>> data = encode(rows, "Q4_K")
>>> data.shape, data.dtype
((2, 144), dtype('uint8'))
>>> bool(np.abs(decode(data, "Q4_K") - rows).max() < 0.1)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Union

import numpy as np

from . import _native
from ._types import Progress
from .errors import exception_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["TYPES", "TensorType", "decode", "encode", "tensor_type"]


class TensorType(NamedTuple):
    """A type that tensors have in files."""

    #: Its name, such as ``Q4_K``.
    name: str
    #: The number that stands in files.
    id: int
    #: Elements of one block; 1 for plain numbers, 0 for types that were removed from the format.
    block_len: int
    #: Bytes of one block.
    block_bytes: int
    #: Whether files of today may have it.
    current: bool
    #: Whether it can be encoded and decoded here.
    codec: bool
    #: Whether its encoder cannot do without importance weights.
    requires_importance: bool


#: Every type, by its name.
TYPES: Dict[str, TensorType] = {row["name"]: TensorType(**row) for row in _native.tensor_types()}
_IDS = {row.id: row for row in TYPES.values()}


def tensor_type(name: Union[str, int]) -> TensorType:
    """The type of a name, in any case, or of a number.

    >>> tensor_type("q8_0").block_bytes
    34
    """
    found = _IDS.get(int(name)) if isinstance(name, int) else TYPES.get(name.upper())
    if found is None:
        raise _refused(f"`{name}` is not a tensor type")
    return found


def _refused(what: str) -> Exception:
    return exception_of("array-refused", "request", what)


def _floats(values: "ArrayLike", what: str) -> "NDArray[np.float32]":
    array = np.asarray(values)
    if array.dtype.name == "bfloat16":
        return np.ascontiguousarray(array, dtype=np.float32)
    if array.dtype.kind not in "fiub":
        raise _refused(f"{what} are {array.dtype}, and no numbers that can be encoded")
    floats = np.ascontiguousarray(array, dtype=np.float32)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 2 and (floats != array).any():
        raise _refused(f"{what} have integers that F32, through which encoding goes, cannot hold")
    return floats


def encode(
    values: "ArrayLike",
    type: Union[str, int],
    importance: Optional["ArrayLike"] = None,
    *,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> "NDArray[np.uint8]":
    """Numbers as the bytes of a type: those that llama.cpp writes.

    The last dimension of ``values`` are rows, which must be whole blocks; the answer has their bytes in its place.
    ``importance`` has a number for each column of a row, or, of an array of three dimensions (experts), of shape
    ``[experts, columns]``. The numbers are copied (as float32) before the lock of the interpreter is released:
    another thread may change the array during the work.

    Raises ``RequestError`` (code ``array-refused``) for anything that does not fit.

    >>> encode([1.0] * 32, "Q8_0")[2:5].tolist()
    [127, 127, 127]
    """
    row = tensor_type(type)
    floats = _floats(values, "the values")
    if np.ndim(values) == 0:
        raise _refused("a single number is no row")
    weights = None if importance is None else _floats(importance, "importance weights").reshape(-1)
    data = _native.encode(floats.reshape(-1), floats.shape[-1], row.name, weights, progress, threads)
    row_bytes = floats.shape[-1] // max(row.block_len, 1) * row.block_bytes
    shaped: "NDArray[np.uint8]" = data.reshape(*floats.shape[:-1], row_bytes)
    return shaped


def decode(
    data: Any,
    type: Union[str, int],
    *,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> "NDArray[np.float32]":
    """Bytes of a type as numbers.

    The last dimension of ``data`` are the bytes of rows; ``bytes`` and the like are one row. Arrays of other types
    than ``uint8`` are taken for their bytes.

    >>> decode(bytes([0x80, 0x3f, 0x00, 0xc0]), "BF16").tolist()
    [1.0, -2.0]
    """
    row = tensor_type(type)
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = np.frombuffer(data, dtype=np.uint8)
    array = np.asarray(data)
    if array.dtype.hasobject or array.ndim == 0:
        raise _refused(f"an array of {array.dtype} has no bytes of blocks")
    stored = np.ascontiguousarray(array).view(np.uint8)
    if row.block_len == 0 or stored.shape[-1] % row.block_bytes != 0:
        what = f"rows of {stored.shape[-1]} bytes are no whole number of {row.name} blocks"
        raise _refused(f"{what} of {row.block_bytes} bytes")
    row_len = stored.shape[-1] // row.block_bytes * row.block_len
    count = stored.size // row.block_bytes * row.block_len
    values = _native.decode(stored.reshape(-1), count, row.name, progress, threads)
    shaped: "NDArray[np.float32]" = values.reshape(*stored.shape[:-1], row_len)
    return shaped
