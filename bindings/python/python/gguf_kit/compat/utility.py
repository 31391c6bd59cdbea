"""File names and safetensors files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import numpy as np

__all__ = [
    "LocalTensor",
    "LocalTensorRange",
    "SafetensorsLocal",
    "fill_templated_filename",
    "model_weight_count_rounded_notation",
    "naming_convention",
    "size_label",
]


def fill_templated_filename(filename: str, output_type: Optional[str]) -> str:
    """Fill the type into a file name template with ``{ftype}``.

    >>> fill_templated_filename("model.{FTYPE}.gguf", "q8_0")
    'model.Q8_0.gguf'
    """
    small = (output_type or "").lower()
    large = (output_type or "").upper()
    return filename.format(small, outtype=small, ftype=small, OUTTYPE=large, FTYPE=large)


def model_weight_count_rounded_notation(model_params_count: int, min_digits: int = 2) -> str:
    """Format a parameter count.

    >>> model_weight_count_rounded_notation(7_241_732_096)
    '7.2B'
    """
    for above, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (0, "K")):
        if model_params_count > above or above == 0:
            break
    # Multiply instead of divide, for the same rounding of ties as the official package.
    scaled = model_params_count * {"T": 1e-12, "B": 1e-9, "M": 1e-6, "K": 1e-3}[suffix]
    places = max(min_digits - len(str(round(scaled)).lstrip("0")), 0)
    return f"{scaled:.{places}f}{suffix}"


def size_label(total_params: int, shared_params: int, expert_params: int, expert_count: int) -> str:
    """Return the size label of a model name.

    >>> size_label(46_702_792_704, 1_605_000_000, 5_637_000_000, 8)
    '8x7.2B'
    """
    if expert_count > 0:
        one = model_weight_count_rounded_notation(abs(shared_params) + abs(expert_params))
        return f"{expert_count}x{one}"
    return model_weight_count_rounded_notation(abs(total_params))


def naming_convention(
    model_name: Optional[str],
    base_name: Optional[str],
    finetune_string: Optional[str],
    version_string: Optional[str],
    size_label: Optional[str],
    output_type: Optional[str],
    model_type: Optional[str] = None,
) -> str:
    """Return the file name of the naming convention.

    >>> naming_convention("Tiny Llama", None, "chat", "v1", "1.1B", "q8_0")
    'Tiny-Llama-1.1B-chat-v1-Q8_0'
    """
    name = base_name if base_name is not None else model_name
    words = [name.strip().replace(" ", "-").replace("/", "-") if name is not None else "ggml-model"]
    words += [size_label] if size_label is not None else []
    others = [finetune_string, version_string, output_type and output_type.upper(), model_type]
    words += [word.strip().replace(" ", "-") for word in others if word is not None]
    return "-".join(words)


@dataclass
class LocalTensorRange:
    """Byte range of a tensor."""

    filename: Path
    offset: int
    size: int


@dataclass
class LocalTensor:
    """A tensor of a safetensors file."""

    dtype: str
    shape: Tuple[int, ...]
    data_range: LocalTensorRange

    def mmap_bytes(self) -> Any:
        """Return the bytes as a copy-on-write memory map."""
        place = self.data_range
        return np.memmap(place.filename, mode="c", offset=place.offset, shape=place.size)


class SafetensorsLocal:
    """Tensors of a safetensors file by name."""

    tensors: Dict[str, LocalTensor]

    def __init__(self, filename: Path) -> None:
        with open(filename, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = os.stat(filename).st_size
            if size < 8 + length:
                raise ValueError(f"Could not read complete metadata. Need {8 + length} bytes, got {size}")
            try:
                header = json.loads(file.read(length).decode("utf-8"))
            except json.JSONDecodeError as error:
                raise ValueError(f"Failed to parse safetensors metadata as JSON: {error}") from error
        header.pop("__metadata__", None)
        self.tensors = {}
        for name in sorted(header):
            begin, end = header[name]["data_offsets"]
            place = LocalTensorRange(filename, 8 + length + begin, end - begin)
            self.tensors[name] = LocalTensor(header[name]["dtype"], tuple(header[name]["shape"]), place)

    def __enter__(self) -> Dict[str, LocalTensor]:
        return self.tensors

    def __exit__(self, *_raised: Any) -> None:
        pass
