"""Reader. The native module parses the header; fields are built lazily."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Union

import numpy as np

from .. import _native
from ..errors import InputError
from .constants import GGMLQuantizationType, GGUFEndian, GGUFValueType
from .quants import quant_shape_to_byte_shape

__all__ = ["GGUFReader", "READER_SUPPORTED_VERSIONS", "ReaderField", "ReaderTensor"]

READER_SUPPORTED_VERSIONS = [2, 3]

_TYPES: Dict[int, str] = {0: "u1", 1: "i1", 2: "u2", 3: "i2", 4: "u4", 5: "i4", 6: "f4", 7: "?", 10: "u8", 11: "i8", 12: "f8"}
_PLAIN = {"F16": "f2", "F32": "f4", "F64": "f8", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8"}


class ReaderField:
    """A metadata key. ``parts`` are built on first access, since a vocabulary has many.

    ``offset`` is the start of the entry, ``parts`` are views of the file, ``data`` has the indices of the parts of the
    value, ``types`` has the type of the value and of its elements.
    """

    def __init__(
        self,
        offset: int,
        name: str,
        parts: Any = (),
        data: Any = (-1,),
        types: Any = (),
        contents: Any = None,
    ) -> None:
        self.offset, self.name, self.types = offset, name, list(types)
        self._build: Any = parts if callable(parts) else None
        self._parts: Any = None if callable(parts) else list(parts)
        self._data: Any = list(data)
        self._contents = contents

    @property
    def parts(self) -> List[Any]:
        """Views of the file: length of the key, key, type, and the parts of the value."""
        if self._parts is None:
            self._parts, self._data = self._build()
        parts: List[Any] = self._parts
        return parts

    @property
    def data(self) -> List[int]:
        """Indices of the parts of the value."""
        if self._parts is None:
            self._parts, self._data = self._build()
        indices: List[int] = self._data
        return indices

    def contents(self, index_or_slice: Union[int, slice] = slice(None)) -> Any:
        """Return the value, or elements of an array."""
        if not self.types:
            return None
        value = self._contents() if self._contents else self.parts[self.data[0]].tolist()[0]
        if self.types[0] != GGUFValueType.ARRAY:
            return value
        if isinstance(value, np.ndarray):
            value = value.tolist()
        return value[index_or_slice]

    def __iter__(self) -> Iterator[Any]:
        """Iterate like the named tuple of the official package."""
        return iter((self.offset, self.name, self.parts, self.data, self.types))

    def __repr__(self) -> str:
        return f"ReaderField(offset={self.offset}, name={self.name!r}, types={self.types})"


class ReaderTensor(NamedTuple):
    """A tensor."""

    name: str
    tensor_type: Any
    shape: Any
    n_elements: int
    n_bytes: int
    data_offset: int
    data: Any
    field: ReaderField


class GGUFReader:
    """Reader of a file: metadata in ``fields``, and ``tensors`` with views of their data.

    >>> reader = GGUFReader("tiny.gguf")
    >>> reader.fields["llama.context_length"].contents(), reader.tensors[0].name
    (512, 'output.weight')
    """

    byte_order: str
    alignment: int
    data_offset: int
    gguf_scalar_to_np: Dict[Any, Any] = {GGUFValueType(i): np.dtype(name).type for i, name in _TYPES.items()}

    def __init__(self, path: Union[str, "os.PathLike[str]"], mode: str = "r") -> None:
        try:
            self._header = _native.Header(path)
        except InputError as error:
            raise _as_official(error) from error
        self.data = np.memmap(path, mode=mode)  # type: ignore[call-overload]
        big = self._header.is_big_endian
        self.endianess = GGUFEndian.BIG if big else GGUFEndian.LITTLE
        self._order = ">" if big else "<"
        self.byte_order = "I" if big == (np.dtype(">u4") == np.dtype("=u4")) else "S"
        self.alignment = self._header.alignment
        self.data_offset = self._header.data_start
        self.fields: "OrderedDict[str, ReaderField]" = OrderedDict()
        entries = self._header.entries()
        tensors = self._header.tensors()
        for name, offset, kind in (("version", 4, 4), ("tensor_count", 8, 10), ("kv_count", 16, 10)):
            part = self._get(offset, _TYPES[kind])
            self.fields[f"GGUF.{name}"] = ReaderField(offset, f"GGUF.{name}", [part], [0], [GGUFValueType(kind)])
        for at, entry in enumerate(entries):
            self.fields[entry[0]] = self._field(at, *entry)
        self.tensors = [self._tensor(*tensor) for tensor in tensors]

    def get_field(self, key: str) -> Optional[ReaderField]:
        """Return the field of a key, or ``None``."""
        return self.fields.get(key)

    def get_tensor(self, idx: int) -> ReaderTensor:
        """Return a tensor by its index."""
        return self.tensors[idx]

    def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Optional[str] = None) -> Any:
        order: Any = override_order or self._order
        kind = np.dtype(dtype).newbyteorder(order)
        return self.data[offset : offset + kind.itemsize * int(count)].view(kind)

    def _string(self, offset: int) -> List[Any]:
        length = self._get(offset, "u8")
        return [length, self._get(offset + 8, "u1", length[0])]

    def _field(
        self, at: int, name: str, start: int, value: int, end: int, kind: int, elements: Optional[int]
    ) -> ReaderField:
        types = [GGUFValueType(kind)]
        count = int(self._get(value + 4, "u8")[0]) if elements is not None else 0
        if elements is not None and count > 0:
            types.append(GGUFValueType(elements))

        def parts() -> Any:
            parts_ = [*self._string(start), self._get(value - 4, "u4")]
            if elements is None:
                found = self._string(value) if kind == GGUFValueType.STRING else [self._get(value, _TYPES[kind])]
                return parts_ + found, [len(parts_) + len(found) - 1]
            parts_ += [self._get(value, "u4"), self._get(value + 4, "u8")]
            if elements == GGUFValueType.STRING:
                first = len(parts_)
                for offset in self._header.string_starts(at):
                    parts_ += self._string(offset)
                return parts_, list(range(first + 1, len(parts_), 2))
            if elements == GGUFValueType.ARRAY:
                raise ValueError(f"{name}: nested arrays have no parts; use contents()")
            each = self._get(value + 12, _TYPES[elements], count)
            indices = list(range(len(parts_), len(parts_) + count))
            return parts_ + [each[i : i + 1] for i in range(count)], indices

        return ReaderField(start, name, parts, (), types, lambda: self._header.value(at))

    def _tensor(self, name: str, dims: List[int], kind: int, offset: int, start: int) -> ReaderTensor:
        ty = GGMLQuantizationType(kind)
        shape = tuple(reversed(dims))
        data_offset = self.data_offset + offset
        count = 1
        for extent in dims:
            count *= extent
        plain = _PLAIN.get(ty.name)
        stored = shape if plain else quant_shape_to_byte_shape(shape, ty)
        items = int(np.prod(stored, dtype=np.uint64))
        data = self._get(data_offset, plain or "u1", items).reshape(stored)

        def parts() -> Any:
            length, text = self._string(start)
            at = start + 8 + int(length[0])
            n = len(dims)
            parts_ = [length, text, self._get(at, "u4"), self._get(at + 4, "u8", n)]
            parts_ += [self._get(at + 4 + 8 * n, "u4"), self._get(at + 8 + 8 * n, "u8")]
            return parts_, [1, 3, 4, 5]

        field = ReaderField(start, name, parts)
        return ReaderTensor(
            name, ty, np.array(dims, np.uint64), count, int(data.nbytes), data_offset, data, field
        )


def _as_official(error: InputError) -> ValueError:
    """Return the error with the wording of the official package, which programs match."""
    if error.code == "tensor-dimensions":
        return ValueError(f"{error}: the count of dimensions exceeds GGML_MAX_DIMS (4)")
    return error
