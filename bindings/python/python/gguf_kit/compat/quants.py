"""Quantization and dequantization, for every type with a codec."""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

import numpy as np

from .. import codecs
from ..errors import RequestError
from .constants import GGML_QUANT_SIZES, GGMLQuantizationType
from .lazy import LazyNumpyTensor

__all__ = [  # noqa: RUF022
    "ImportanceNeededError",
    "QuantError",
    "dequantize",
    "quant_shape_from_byte_shape",
    "quant_shape_to_byte_shape",
    "quantize",
]


class QuantError(Exception):
    """A tensor cannot be quantized to a type."""


def quant_shape_to_byte_shape(shape: Sequence[int], quant_type: Any) -> Tuple[int, ...]:
    """Convert a shape in elements to a shape in bytes.

    >>> quant_shape_to_byte_shape((4, 64), GGMLQuantizationType.Q8_0)
    (4, 68)
    """
    elements, size = GGML_QUANT_SIZES[quant_type]
    if shape[-1] % elements != 0:
        what = f"Quantized tensor row size ({shape[-1]}) is not a multiple of {quant_type.name} block size ({elements})"
        raise ValueError(what)
    return (*shape[:-1], shape[-1] // elements * size)


def quant_shape_from_byte_shape(shape: Sequence[int], quant_type: Any) -> Tuple[int, ...]:
    """Convert a shape in bytes to a shape in elements."""
    elements, size = GGML_QUANT_SIZES[quant_type]
    if shape[-1] % size != 0:
        what = f"Quantized tensor bytes per row ({shape[-1]}) is not a multiple of {quant_type.name} type size ({size})"
        raise ValueError(what)
    return (*shape[:-1], shape[-1] // size * elements)


class ImportanceNeededError(QuantError, NotImplementedError):
    """The type requires an importance matrix; use ``gguf_kit.encode``."""


def _encode(data: Any, name: str) -> Any:
    if codecs.TYPES[name].requires_importance:
        raise ImportanceNeededError(f"Quantization for {name} requires an importance matrix; use gguf_kit.encode")
    try:
        return codecs.encode(data, name)
    except RequestError as error:
        raise QuantError(str(error)) from error


class _Quant:
    """Codec of a type for arrays and lazy arrays."""

    def __init__(self, qtype: Any) -> None:
        self.qtype = qtype
        self.block_size, self.type_size = GGML_QUANT_SIZES[qtype]
        self._encode_lazy = LazyNumpyTensor._wrap_fn(
            lambda data: _encode(data, qtype.name),
            meta_noop=(np.uint8, lambda shape: quant_shape_to_byte_shape(shape, qtype)),
        )
        self._decode_lazy = LazyNumpyTensor._wrap_fn(
            lambda data: codecs.decode(data, qtype.name),
            meta_noop=(np.float32, lambda shape: quant_shape_from_byte_shape(shape, qtype)),
        )

    def quantize(self, data: Any) -> Any:
        """Quantize an array."""
        if not isinstance(data, LazyNumpyTensor):
            return _encode(data, self.qtype.name)
        try:
            return self._encode_lazy(data)
        except ValueError as error:
            raise QuantError(str(error)) from error

    def dequantize(self, data: Any) -> Any:
        """Dequantize an array."""
        if isinstance(data, LazyNumpyTensor):
            return self._decode_lazy(data)
        return codecs.decode(data, self.qtype.name)


#: Codecs of all quantized types in files, and of BF16.
_type_traits: Dict[Any, _Quant] = {
    qtype: _Quant(qtype)
    for qtype in GGMLQuantizationType
    if codecs.TYPES[qtype.name].codec
    and codecs.TYPES[qtype.name].current
    and (GGML_QUANT_SIZES[qtype][0] > 1 or qtype.name == "BF16")
}
# Module attributes by type name, as in the official package.
globals().update({qtype.name: of for qtype, of in _type_traits.items()})


def _traits(qtype: Any, what: str) -> _Quant:
    found = _type_traits.get(qtype)
    if found is None:
        raise NotImplementedError(f"{what} for {qtype.name} is not yet implemented")
    return found


def quantize(data: Any, qtype: Any) -> Any:
    """Quantize an array, byte-identical to llama.cpp.

    >>> quantize(np.ones((1, 256), np.float32), GGMLQuantizationType.Q4_K).shape
    (1, 144)
    """
    if qtype == GGMLQuantizationType.F32:
        return data.astype(np.float32, copy=False)
    if qtype == GGMLQuantizationType.F16:
        return data.astype(np.float16, copy=False)
    return _traits(qtype, "Quantization").quantize(data)


def dequantize(data: Any, qtype: Any) -> Any:
    """Dequantize an array."""
    if qtype == GGMLQuantizationType.F32:
        return data.view(np.float32)
    if qtype == GGMLQuantizationType.F16:
        return data.view(np.float16).astype(np.float32)
    return _traits(qtype, "Dequantization").dequantize(data)
