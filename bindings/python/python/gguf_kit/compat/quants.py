"""Encoding and decoding of tensors, of every type that has a codec."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence, Tuple

import numpy as np

from .. import codecs
from ..errors import RequestError
from .constants import GGML_QUANT_SIZES, GGMLQuantizationType
from .lazy import LazyNumpyTensor

__all__ = [
    "QuantError",
    "dequantize",
    "quant_shape_from_byte_shape",
    "quant_shape_to_byte_shape",
    "quantize",
]


class QuantError(Exception):
    """A tensor cannot have a type."""


def quant_shape_to_byte_shape(shape: Sequence[int], quant_type: Any) -> Tuple[int, ...]:
    """The shape in bytes of a shape in elements.

    >>> quant_shape_to_byte_shape((4, 64), GGMLQuantizationType.Q8_0)
    (4, 68)
    """
    elements, size = GGML_QUANT_SIZES[quant_type]
    if shape[-1] % elements != 0:
        what = f"Quantized tensor row size ({shape[-1]}) is not a multiple of {quant_type.name} block size ({elements})"
        raise ValueError(what)
    return (*shape[:-1], shape[-1] // elements * size)


def quant_shape_from_byte_shape(shape: Sequence[int], quant_type: Any) -> Tuple[int, ...]:
    """The shape in elements of a shape in bytes."""
    elements, size = GGML_QUANT_SIZES[quant_type]
    if shape[-1] % size != 0:
        what = f"Quantized tensor bytes per row ({shape[-1]}) is not a multiple of {quant_type.name} type size ({size})"
        raise ValueError(what)
    return (*shape[:-1], shape[-1] // size * elements)


def _codec(qtype: Any) -> str:
    row = codecs.TYPES.get(qtype.name)
    if row is None or not row.codec:
        raise NotImplementedError(f"Quantization for {qtype.name} is not yet implemented")
    return row.name


def _encode(data: Any, name: str) -> Any:
    try:
        return codecs.encode(data, name)
    except RequestError as fault:
        raise QuantError(str(fault)) from fault


#: One pair of functions for each type, which lazy arrays remember.
_FUNCTIONS: Dict[str, Tuple[Callable[..., Any], Callable[..., Any]]] = {}


def _functions(qtype: Any) -> Tuple[Callable[..., Any], Callable[..., Any]]:
    name = _codec(qtype)
    if name not in _FUNCTIONS:
        _FUNCTIONS[name] = (
            LazyNumpyTensor._wrap_fn(
                lambda data: _encode(data, name),
                meta_noop=(np.uint8, lambda shape: quant_shape_to_byte_shape(shape, qtype)),
            ),
            LazyNumpyTensor._wrap_fn(
                lambda data: codecs.decode(data, name),
                meta_noop=(np.float32, lambda shape: quant_shape_from_byte_shape(shape, qtype)),
            ),
        )
    return _FUNCTIONS[name]


def quantize(data: Any, qtype: Any) -> Any:
    """Numbers as the bytes of a type, with the bytes that llama.cpp writes.

    >>> quantize(np.ones((1, 256), np.float32), GGMLQuantizationType.Q4_K).shape
    (1, 144)
    """
    if qtype == GGMLQuantizationType.F32:
        return data.astype(np.float32, copy=False)
    if qtype == GGMLQuantizationType.F16:
        return data.astype(np.float16, copy=False)
    name = _codec(qtype)
    if isinstance(data, LazyNumpyTensor):
        try:
            return _functions(qtype)[0](data)
        except ValueError as fault:
            raise QuantError(str(fault)) from fault
    return _encode(data, name)


def dequantize(data: Any, qtype: Any) -> Any:
    """Bytes of a type as numbers."""
    if qtype == GGMLQuantizationType.F32:
        return data.view(np.float32)
    if qtype == GGMLQuantizationType.F16:
        return data.view(np.float16).astype(np.float32)
    name = _codec(qtype)
    return _functions(qtype)[1](data) if isinstance(data, LazyNumpyTensor) else codecs.decode(data, name)
