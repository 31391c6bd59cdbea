"""Encoding and decoding of tensor data, for every tensor type.

Examples
--------
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
    """A tensor type."""

    #: Name, such as ``Q4_K``.
    name: str
    #: Id in files.
    id: int
    #: Elements per block; 1 for unquantized types, 0 for types removed from the format.
    block_len: int
    #: Bytes per block.
    block_bytes: int
    #: Whether the type is part of the current format.
    current: bool
    #: Whether the type can be encoded and decoded.
    codec: bool
    #: Whether encoding requires an importance matrix.
    requires_importance: bool


#: All tensor types by name.
TYPES: Dict[str, TensorType] = {row["name"]: TensorType(**row) for row in _native.tensor_types()}
_IDS = {row.id: row for row in TYPES.values()}


def tensor_type(name: Union[str, int]) -> TensorType:
    """Return a tensor type by its case-insensitive name or its id.

    Parameters
    ----------
    name : str or int
        Name or id.

    Returns
    -------
    TensorType

    Examples
    --------
    >>> tensor_type("q8_0").block_bytes
    34
    """
    found = _IDS.get(int(name)) if isinstance(name, int) else TYPES.get(name.upper())
    if found is None:
        raise _refused(f"`{name}` is not a tensor type")
    return found


def _refused(message: str) -> Exception:
    return exception_of("array-refused", "request", message)


def _floats(values: "ArrayLike", what: str) -> "NDArray[np.float32]":
    array = np.asarray(values)
    if array.dtype.name == "bfloat16":
        return np.ascontiguousarray(array, dtype=np.float32)
    if array.dtype.kind not in "fiub":
        raise _refused(f"{what} have dtype {array.dtype}; expected numbers")
    floats = np.ascontiguousarray(array, dtype=np.float32)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 2 and (floats != array).any():
        raise _refused(f"{what} have integers that F32 cannot represent exactly")
    return floats


def encode(
    values: "ArrayLike",
    type: Union[str, int],
    importance: Optional["ArrayLike"] = None,
    *,
    progress: Optional[Progress] = None,
    threads: Optional[int] = None,
) -> "NDArray[np.uint8]":
    """Encode values as a tensor type, byte-identical to llama.cpp.

    The values are copied as float32 before the GIL is released, so another thread may change the array.

    Parameters
    ----------
    values : array_like
        Values. The last dimension is a row and must be a multiple of the block size.
    type : str or int
        Name or id of the tensor type.
    importance : array_like, optional
        Importance of each column, or of shape ``[experts, columns]`` for a three-dimensional array of experts.
    progress : callable, optional
        Progress callback.
    threads : int, optional
        Number of threads.

    Returns
    -------
    ndarray of uint8
        The encoded rows; the last dimension is the bytes of a row.

    Raises
    ------
    RequestError
        With code ``array-refused`` if the values cannot be encoded.

    Examples
    --------
    >>> encode([1.0] * 32, "Q8_0")[2:5].tolist()
    [127, 127, 127]
    """
    row = tensor_type(type)
    floats = _floats(values, "values")
    if np.ndim(values) == 0:
        raise _refused("a scalar cannot be encoded; expected at least one dimension")
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
    """Decode tensor data.

    Parameters
    ----------
    data : array_like or bytes-like
        Encoded rows. The last dimension is the bytes of a row; a bytes-like object is one row. An array of another
        dtype than uint8 is reinterpreted as bytes.
    type : str or int
        Name or id of the tensor type.
    progress : callable, optional
        Progress callback.
    threads : int, optional
        Number of threads.

    Returns
    -------
    ndarray of float32

    Raises
    ------
    RequestError
        With code ``array-refused`` if the size of a row is not a multiple of the block size.

    Examples
    --------
    >>> decode(bytes([0x80, 0x3f, 0x00, 0xc0]), "BF16").tolist()
    [1.0, -2.0]
    """
    row = tensor_type(type)
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = np.frombuffer(data, dtype=np.uint8)
    array = np.asarray(data)
    if array.dtype.hasobject or array.ndim == 0:
        raise _refused(f"an array of dtype {array.dtype} with {array.ndim} dimensions cannot be decoded")
    stored = np.ascontiguousarray(array).view(np.uint8)
    if row.block_len == 0 or stored.shape[-1] % row.block_bytes != 0:
        raise _refused(
            f"row size {stored.shape[-1]} is not a multiple of the {row.name} block size of {row.block_bytes} bytes"
        )
    row_len = stored.shape[-1] // row.block_bytes * row.block_len
    count = stored.size // row.block_bytes * row.block_len
    values = _native.decode(stored.reshape(-1), count, row.name, progress, threads)
    shaped: "NDArray[np.float32]" = values.reshape(*stored.shape[:-1], row_len)
    return shaped
