#!/usr/bin/env python3
"""Generates python/gguf_kit/compat/official.json from the official package `gguf`.

    tables/official.py DIRECTORY-OF-gguf-py

The table has the names, ids and keys that programs rely on; the official package knows more architectures than our
schema. The effect of each writer method is found by calling it.
"""

import enum
import inspect
import json
import logging
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
logging.disable(logging.CRITICAL)

import gguf  # noqa: E402
from gguf import constants  # noqa: E402


def strings(kind):
    """Return a class of constants as nested dicts."""
    fields = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    return {name: strings(value) if inspect.isclass(value) else value for name, value in fields.items()}


def enums():
    """Yield all enums except tensor types, which our own table has."""
    for name, kind in vars(constants).items():
        if inspect.isclass(kind) and issubclass(kind, enum.Enum) and kind.__module__ == "gguf.constants":
            if name != "GGMLQuantizationType":
                numbers = issubclass(kind, int)
                yield name, {"numbers": numbers, "members": {m.name: m.value for m in kind}}


def names(mapping):
    """Replace enum members by their names."""
    if isinstance(mapping, dict):
        return {key.name: names(value) for key, value in mapping.items()}
    if isinstance(mapping, (list, tuple)):
        return [names(item) for item in mapping]
    return mapping.name if isinstance(mapping, enum.Enum) else mapping


def mapping(config):
    return {tensor.name: list(keys) for tensor, keys in config.items()}


# Methods that do more than set a key; gguf_writer.py implements them.
HANDWRITTEN = {
    "add_architecture", "add_array", "add_bool", "add_chat_template", "add_custom_alignment", "add_dense_features_dims",
    "add_key_value", "add_shard_kv_data", "add_string", "add_tensor", "add_tensor_extra_prec_a4", "add_tensor_info",
}  # fmt: skip


class Marker(enum.Enum):
    X = "marker"


def writer():
    """Yield the parameters, the key and the value types of each method that sets one key."""
    examples = [7, "x", True, 1.5, [7, 8], ["a"], Marker.X]
    for name, method in inspect.getmembers(gguf.GGUFWriter, inspect.isfunction):
        scalar = name[4:].upper() in constants.GGUFValueType.__members__
        if not name.startswith("add_") or name in HANDWRITTEN or scalar:
            continue
        parameters = list(inspect.signature(method).parameters)[1:]
        rows = {}
        for example in examples:
            arguments = [example] if len(parameters) == 1 else [4711, example]
            sample = gguf.GGUFWriter(None, "{arch}")
            del sample.kv_data[0]["general.architecture"]
            try:
                method(sample, *arguments)
            except Exception:
                continue
            for key, value in sample.kv_data[0].items():
                kind = "array" if value.type.name == "ARRAY" else "scalar"
                rows[kind] = value.type.name, value.sub_type and value.sub_type.name
                rows["key"] = key.replace("4711", "{id}")
        assert set(rows) - {"key"}, f"{name}{parameters} sets no key"
        array = rows.get("array")
        yield name, {
            "parameters": parameters,
            "key": rows["key"],
            "scalar": rows["scalar"][0] if "scalar" in rows else None,
            "array": array is not None,
            "elements": array[1] if array else None,
        }


maps = gguf.TensorNameMap
table = {
    "version": "llama.cpp as in llama-cpp-python 0.3.36",
    "keys": strings(constants.Keys),
    "types": strings(constants.GGUFType),
    "projectors": strings(constants.VisionProjectorType),
    "old_keys": {n: v for n, v in vars(constants).items() if n.startswith("KEY_")},
    "enums": dict(enums()),
    "quantization_types": {ty.name: ty.value for ty in constants.GGMLQuantizationType},
    "arch_names": names(constants.MODEL_ARCH_NAMES),
    "projector_names": names(constants.VISION_PROJECTOR_TYPE_NAMES),
    "tensor_names": names(constants.TENSOR_NAMES),
    "arch_tensors": names(constants.MODEL_TENSORS),
    "arch_skips": names(constants.MODEL_TENSOR_SKIP),
    "names": mapping(maps.mappings_cfg),
    "block_names": mapping(maps.block_mappings_cfg),
    "arch_block_names": {arch.name: mapping(of) for arch, of in maps.arch_block_mappings_cfg.items()},
    "writer": dict(writer()),
}
out = Path(__file__).parent.parent / "python" / "gguf_kit" / "compat" / "official.json"
lines = [f" {json.dumps(name)}: {json.dumps(rows, separators=(',', ':'))}" for name, rows in table.items()]
out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
print(f"{out}: {out.stat().st_size} bytes")
