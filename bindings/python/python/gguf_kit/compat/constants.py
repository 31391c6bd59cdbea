"""Constants of the format and of models, generated from the table of tensor types and from ``official.json``."""

from __future__ import annotations

import json
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Dict, List, Tuple

from .. import codecs

GGUF_MAGIC = 0x46554747
GGUF_VERSION = 3
GGUF_DEFAULT_ALIGNMENT = 32
GGML_QUANT_VERSION = 2
GGML_MAX_DIMS = 4
QK_K = 256

_TABLE: Dict[str, Any] = json.loads(Path(__file__).with_name("official.json").read_text("utf-8"))


def _constants(name: str, fields: Dict[str, Any]) -> type:
    constants = {key: _constants(key, value) if isinstance(value, dict) else value for key, value in fields.items()}
    return type(name, (), constants)


def _enum(name: str) -> Any:
    row = _TABLE["enums"][name]
    kind: Any = IntEnum if row["numbers"] else Enum
    return kind(name, row["members"], module=__name__)


Keys: Any = _constants("Keys", _TABLE["keys"])
GGUFType: Any = _constants("GGUFType", _TABLE["types"])
VisionProjectorType: Any = _constants("VisionProjectorType", _TABLE["projectors"])

for _name in _TABLE["enums"]:
    if _name != "GGUFValueType":
        globals()[_name] = _enum(_name)
globals().update(_TABLE["old_keys"])

MODEL_ARCH: Any = globals()["MODEL_ARCH"]
MODEL_TENSOR: Any = globals()["MODEL_TENSOR"]
VISION_PROJECTOR_TYPE: Any = globals()["VISION_PROJECTOR_TYPE"]
GGUFEndian: Any = globals()["GGUFEndian"]
TokenType: Any = globals()["TokenType"]


class GGUFValueType(IntEnum):
    """Types of metadata values with their ids."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12

    @staticmethod
    def get_type(val: Any) -> "GGUFValueType":
        """Return the default type of a Python value.

        >>> GGUFValueType.get_type(1).name
        'INT32'
        """
        for kinds, found in _DEFAULT_TYPES:
            if isinstance(val, kinds):
                return found
        raise ValueError(f"Unknown type: {type(val)}")


#: `bool` is a subclass of `int` and comes first.
_DEFAULT_TYPES: List[Tuple[Tuple[type, ...], GGUFValueType]] = [
    ((str, bytes, bytearray), GGUFValueType.STRING),
    ((list,), GGUFValueType.ARRAY),
    ((float,), GGUFValueType.FLOAT32),
    ((bool,), GGUFValueType.BOOL),
    ((int,), GGUFValueType.INT32),
]

#: The types of the official package: those in files, and those used in memory only.
_IntEnum: Any = IntEnum
GGMLQuantizationType: Any = _IntEnum(
    "GGMLQuantizationType",
    {row.name: row.id for row in codecs.TYPES.values() if row.block_len > 0},
    module=__name__,
)
#: Elements and bytes per block.
GGML_QUANT_SIZES: Dict[Any, Tuple[int, int]] = {
    GGMLQuantizationType[row.name]: (row.block_len, row.block_bytes)
    for row in codecs.TYPES.values()
    if row.block_len > 0
}

MODEL_ARCH_NAMES: Dict[Any, str] = {MODEL_ARCH[n]: v for n, v in _TABLE["arch_names"].items()}
VISION_PROJECTOR_TYPE_NAMES: Dict[Any, str] = {
    VISION_PROJECTOR_TYPE[n]: v for n, v in _TABLE["projector_names"].items()
}
TENSOR_NAMES: Dict[Any, str] = {MODEL_TENSOR[n]: v for n, v in _TABLE["tensor_names"].items()}


def _tensors(table: Dict[str, List[str]]) -> Dict[Any, List[Any]]:
    return {MODEL_ARCH[arch]: [MODEL_TENSOR[n] for n in names] for arch, names in table.items()}


MODEL_TENSORS = _tensors(_TABLE["arch_tensors"])
MODEL_TENSOR_SKIP = _tensors(_TABLE["arch_skips"])
