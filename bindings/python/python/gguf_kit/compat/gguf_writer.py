"""Writer. The methods that set a single key are generated from a table."""

from __future__ import annotations

import logging
import os
import struct
import sys
import tempfile
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from pathlib import Path
from string import ascii_letters, digits
from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .. import _native
from .constants import (
    _TABLE,
    GGUF_DEFAULT_ALIGNMENT,
    GGUF_MAGIC,
    GGUF_VERSION,
    GGMLQuantizationType,
    GGUFEndian,
    GGUFValueType,
    Keys,
)
from .quants import quant_shape_from_byte_shape

__all__ = ["GGUFValue", "GGUFWriter", "SHARD_NAME_FORMAT", "TensorInfo", "WriterState"]

logger = logging.getLogger(__name__)

SHARD_NAME_FORMAT = "{:s}-{:05d}-of-{:05d}.gguf"

_PACKED = {
    GGUFValueType.UINT8: "B",
    GGUFValueType.INT8: "b",
    GGUFValueType.UINT16: "H",
    GGUFValueType.INT16: "h",
    GGUFValueType.UINT32: "I",
    GGUFValueType.INT32: "i",
    GGUFValueType.FLOAT32: "f",
    GGUFValueType.UINT64: "Q",
    GGUFValueType.INT64: "q",
    GGUFValueType.FLOAT64: "d",
    GGUFValueType.BOOL: "?",
}
_NUMPY_TYPES = {
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
}


@dataclass
class TensorInfo:
    """A tensor to write."""

    shape: Sequence[int]
    dtype: Any
    nbytes: int
    tensor: Any = None


@dataclass
class GGUFValue:
    """A value with its type, and optionally the type of its elements."""

    value: Any
    type: GGUFValueType
    sub_type: Optional[GGUFValueType] = None


class WriterState(Enum):
    """What has been written."""

    NO_FILE = auto()
    EMPTY = auto()
    HEADER = auto()
    KV_DATA = auto()
    TI_DATA = auto()
    WEIGHTS = auto()


def _native_order() -> Any:
    return GGUFEndian.BIG if sys.byteorder == "big" else GGUFEndian.LITTLE


class GGUFWriter:
    """Writer of a file, or of several shards.

    >>> writer = GGUFWriter("written.gguf", "llama")
    >>> writer.add_context_length(256)
    >>> writer.add_tensor("output_norm.weight", np.ones(8, np.float32))
    >>> writer.write_header_to_file()
    >>> writer.write_kv_data_to_file()
    >>> writer.write_tensors_to_file()
    >>> writer.close()
    """

    def __init__(
        self,
        path: Union[None, str, "os.PathLike[str]"],
        arch: str,
        use_temp_file: bool = False,
        endianess: Any = GGUFEndian.LITTLE,
        split_max_tensors: int = 0,
        split_max_size: int = 0,
        dry_run: bool = False,
        small_first_shard: bool = False,
    ) -> None:
        self.path = Path(path) if path else None
        self.arch, self.endianess = arch, endianess
        self.data_alignment = GGUF_DEFAULT_ALIGNMENT
        self.use_temp_file, self.temp_file = use_temp_file, None
        self.split_max_tensors, self.split_max_size = split_max_tensors, split_max_size
        self.dry_run, self.small_first_shard = dry_run, small_first_shard
        self.fout: Optional[List[IO[bytes]]] = None
        self.kv_data: List[Dict[str, GGUFValue]] = [{}]
        self.tensors: List[Dict[str, TensorInfo]] = [{}, {}] if small_first_shard else [{}]
        self.state = WriterState.NO_FILE
        self.add_architecture()

    # Metadata.

    def add_key_value(self, key: str, val: Any, vtype: GGUFValueType, sub_type: Optional[GGUFValueType] = None) -> None:
        """Set a key."""
        if any(key in entries for entries in self.kv_data):
            logger.warning("Duplicated key name %r, overwriting it with new value %r of type %s", key, val, vtype.name)
        self.kv_data[0][key] = GGUFValue(val, vtype, sub_type)

    def remove_key(self, key: str) -> None:
        """Remove a key if it exists."""
        for entries in self.kv_data:
            entries.pop(key, None)

    def add_string(self, key: str, val: str) -> None:
        """Set a key to a string; an empty string is ignored."""
        if val:
            self.add_key_value(key, val, GGUFValueType.STRING)

    def add_array(self, key: str, val: Sequence[Any]) -> None:
        """Set a key to an array; an empty array is ignored."""
        if len(val) > 0:
            self.add_key_value(key, val, GGUFValueType.ARRAY)

    def add_architecture(self) -> None:
        """Set the architecture of the writer."""
        self.add_string(Keys.General.ARCHITECTURE, self.arch)

    def add_custom_alignment(self, alignment: int) -> None:
        """Set the alignment of tensor data."""
        if alignment <= 0 or alignment & (alignment - 1):
            raise ValueError("Invalid alignment: must be a non-zero power of two")
        self.data_alignment = alignment
        self.add_key_value(Keys.General.ALIGNMENT, alignment, GGUFValueType.UINT32)

    def add_dense_features_dims(self, dense: str, in_f: int, out_f: int) -> None:
        """Set the sizes of a dense module of an embedding model."""
        for key, size in ((Keys.LLM.DENSE_FEAT_IN_SIZE, in_f), (Keys.LLM.DENSE_FEAT_OUT_SIZE, out_f)):
            self.add_key_value(key.format(arch=self.arch, dense=dense), size, GGUFValueType.UINT32)

    def add_tensor_extra_prec_a4(self, tensor_names: Sequence[str], values: Sequence[bool]) -> None:
        """Set the activation precision of tensors."""
        if len(tensor_names) != len(values):
            raise ValueError("tensor_extra prec_a4 names and values must have the same length")
        self.add_array(Keys.General.TENSOR_EXTRA_NAME, list(tensor_names))
        self.add_array(Keys.General.TENSOR_EXTRA_PREC_A4, list(values))

    def add_chat_template(self, value: Union[None, str, Sequence[Mapping[str, str]]]) -> None:
        """Set the chat template, or several named templates."""
        if value is None:
            self.remove_key(Keys.Tokenizer.CHAT_TEMPLATE)
            return
        if not isinstance(value, str):
            default, names = None, set()
            allowed = ascii_letters + digits
            for choice in value:
                name = "".join(c if c in allowed else "_" for c in choice.get("name", ""))
                template = choice.get("template")
                if not name or template is None:
                    continue
                if name == "default":
                    default = template
                    continue
                if name not in names:
                    names.add(name)
                    self.add_string(Keys.Tokenizer.CHAT_TEMPLATE_N.format(name=name), template)
            if names:
                self.add_array(Keys.Tokenizer.CHAT_TEMPLATES, list(names))
            if default is None:
                return
            value = default
        self.add_string(Keys.Tokenizer.CHAT_TEMPLATE, value)

    # Tensors.

    def get_total_parameter_count(self) -> Tuple[int, int, int, int]:
        """Return the counts of all parameters, shared parameters, parameters per expert, and experts.

        The first is negative for adapters.
        """
        total = shared = per_expert = experts = expert_tensors = 0
        lora: Optional[Tuple[str, TensorInfo]] = None
        for name, info in ((name, info) for file in self.tensors for name, info in file.items()):
            shape = list(info.shape)
            if name.endswith(".lora_a"):
                lora = (name, info)
                continue
            if name.endswith(".lora_b"):
                if lora is None or lora[0] != name[:-1] + "a":
                    logger.warning("can't measure LoRA size correctly, tensor order is unusual")
                    return 0, 0, 0, 0
                shape[-1] = lora[1].shape[-1]
            size = prod(shape)
            total += size
            if "_exps." in name and len(shape) >= 3:
                count = shape[-2 if ".bias" in name else -3]
                per_expert += size // count
                experts += count
                expert_tensors += 1
            else:
                shared += size
        return (-total if lora else total), shared, per_expert, (experts // expert_tensors if expert_tensors else 0)

    def add_tensor_info(
        self, name: str, tensor_shape: Sequence[int], tensor_dtype: Any, tensor_nbytes: int, raw_dtype: Any = None
    ) -> None:
        """Declare a tensor whose data is written later."""
        if self.state is not WriterState.NO_FILE:
            raise ValueError(f"Expected output file to be not yet opened, got {self.state}")
        if any(name in entries for entries in self.tensors):
            raise ValueError(f"Duplicated tensor name {name!r}")
        if raw_dtype is None:
            known = _NUMPY_TYPES.get(np.dtype(tensor_dtype).name)
            if known is None:
                raise ValueError("Only F16, F32, F64, I8, I16, I32, I64 tensors are supported for now")
            dtype = GGMLQuantizationType[known]
        else:
            dtype = raw_dtype
            if tensor_dtype == np.uint8:
                tensor_shape = quant_shape_from_byte_shape(tensor_shape, raw_dtype)
        last = self.tensors[-1]
        too_many = 0 < self.split_max_tensors <= len(last)
        size = sum(info.nbytes for info in last.values()) + tensor_nbytes
        if last and (too_many or 0 < self.split_max_size < size):
            self.tensors.append({})
        self.tensors[-1][name] = TensorInfo(tensor_shape, dtype, tensor_nbytes)

    def add_tensor(
        self,
        name: str,
        tensor: Any,
        raw_shape: Optional[Sequence[int]] = None,
        raw_dtype: Any = None,
        tensor_endianess: Any = None,
    ) -> None:
        """Add a tensor, whose data is read when it is written."""
        tensor = self._ordered(tensor, tensor_endianess)
        if self.use_temp_file and self.temp_file is None:
            self.temp_file = tempfile.SpooledTemporaryFile(max_size=256 << 20)  # type: ignore[assignment]
        shape = tensor.shape if raw_shape is None else raw_shape
        self.add_tensor_info(name, shape, tensor.dtype, tensor.nbytes, raw_dtype)
        if self.temp_file is None:
            self.tensors[-1][name].tensor = tensor
        else:
            _write(tensor, self.temp_file)
            self.write_padding(self.temp_file, tensor.nbytes)

    def _ordered(self, tensor: Any, endianess: Any) -> Any:
        same = (_native_order() if endianess is None else endianess) == self.endianess
        return tensor if same else tensor.byteswap(inplace=False)

    # Files.

    @staticmethod
    def ggml_pad(x: int, n: int) -> int:
        """Round up to a multiple of ``n``."""
        return (x + n - 1) // n * n

    def write_padding(self, fp: IO[bytes], n: int, align: Optional[int] = None) -> None:
        """Write zeros up to the alignment."""
        fp.write(bytes(self.ggml_pad(n, align or self.data_alignment) - n))

    def format_shard_names(self, path: Path) -> List[Path]:
        """Return the names of the files."""
        count = len(self.tensors)
        if count == 1:
            return [path]
        return [path.with_name(SHARD_NAME_FORMAT.format(path.stem, i + 1, count)) for i in range(count)]

    def print_plan(self) -> List[Path]:
        """Return the names of the files. A dry run prints them and exits."""
        assert self.path is not None
        names = self.format_shard_names(self.path)
        logger.info("Writing the following files:")
        for name, tensors in zip(names, self.tensors):
            size = self.format_n_bytes_to_str(sum(info.nbytes for info in tensors.values()))
            logger.info("%s: n_tensors = %d, total_size = %s", name, len(tensors), size)
        if self.dry_run:
            logger.info("Dry run, not writing files")
            for name in names:
                print(name)
            sys.exit()
        return names

    def open_output_file(self, path: Optional[Path] = None) -> None:
        """Create the files."""
        if self.state is WriterState.EMPTY and path in (None, self.path):
            return
        self._require(WriterState.NO_FILE, "not yet opened")
        self.path = path if path is not None else self.path
        if self.path is not None:
            self.fout = [open(name, "wb") for name in self.print_plan()]
            self.state = WriterState.EMPTY

    def _require(self, state: WriterState, words: str) -> List[IO[bytes]]:
        if self.state is not state:
            raise ValueError(f"Expected output file to be {words}, got {self.state}")
        return self.fout or []

    def add_shard_kv_data(self) -> None:
        """Set the ``split.*`` keys of shards."""
        count = len(self.tensors)
        if count == 1:
            return
        tensors = sum(map(len, self.tensors))
        self.kv_data += [{} for _ in range(len(self.kv_data), count)]
        for number, entries in enumerate(self.kv_data):
            entries[Keys.Split.LLM_KV_SPLIT_NO] = GGUFValue(number, GGUFValueType.UINT16)
            entries[Keys.Split.LLM_KV_SPLIT_COUNT] = GGUFValue(count, GGUFValueType.UINT16)
            entries[Keys.Split.LLM_KV_SPLIT_TENSORS_COUNT] = GGUFValue(tensors, GGUFValueType.INT32)

    def write_header_to_file(self, path: Optional[Path] = None) -> None:
        """Write the fixed-size header: magic, version, counts."""
        if len(self.tensors) == 1 and (self.split_max_tensors or self.split_max_size):
            logger.warning("Model fails split requirements, not splitting")
        self.open_output_file(path)
        files = self._require(WriterState.EMPTY, "empty")
        self.add_shard_kv_data()
        for file, tensors, keys in zip(files, self.tensors, self.kv_data):
            file.write(struct.pack("<I", GGUF_MAGIC))
            file.write(self._pack("I", GGUF_VERSION) + self._pack("Q", len(tensors)) + self._pack("Q", len(keys)))
        self.flush()
        self.state = WriterState.HEADER

    def write_kv_data_to_file(self) -> None:
        """Write the metadata."""
        files = self._require(WriterState.HEADER, "containing the header")
        for file, keys in zip(files, self.kv_data):
            for key, value in keys.items():
                file.write(self._pack_val(key, GGUFValueType.STRING, add_vtype=False))
                file.write(self._pack_val(value.value, value.type, add_vtype=True, sub_type=value.sub_type))
        self.flush()
        self.state = WriterState.KV_DATA

    def write_ti_data_to_file(self) -> None:
        """Write the tensor infos."""
        files = self._require(WriterState.KV_DATA, "containing KV data")
        for file, tensors in zip(files, self.tensors):
            offset = 0
            for name, info in tensors.items():
                file.write(self._pack_val(name, GGUFValueType.STRING, add_vtype=False))
                file.write(self._pack("I", len(info.shape)))
                for extent in reversed(info.shape):
                    file.write(self._pack("Q", extent))
                file.write(self._pack("I", info.dtype) + self._pack("Q", offset))
                offset += self.ggml_pad(info.nbytes, self.data_alignment)
        self.flush()
        self.state = WriterState.TI_DATA

    def write_tensor_data(self, tensor: Any, tensor_endianess: Any = None) -> None:
        """Write the data of the next tensor without data."""
        if self.state not in (WriterState.TI_DATA, WriterState.WEIGHTS):
            raise ValueError(f"Expected output file to contain tensor info or weights, got {self.state}")
        tensor = self._ordered(tensor, tensor_endianess)
        for file, tensors in zip(self.fout or [], self.tensors):
            pending = next((name for name, info in tensors.items() if info.tensor is None), None)
            if pending is None:
                continue
            if tensors[pending].nbytes != tensor.nbytes:
                raise ValueError(f"{pending} has {tensors[pending].nbytes} bytes, not {tensor.nbytes}")
            self.write_padding(file, file.tell())
            _write(tensor, file)
            self.write_padding(file, tensor.nbytes)
            tensors[pending].tensor = _WRITTEN
            self.state = WriterState.WEIGHTS
            return
        raise ValueError("the data of all tensors has been written")

    def write_tensors_to_file(self, *, progress: bool = False) -> None:
        """Write the tensor infos and the data of all tensors. ``progress`` requires the package ``tqdm``."""
        self.write_ti_data_to_file()
        files = self.fout or []
        for file in files:
            self.write_padding(file, file.tell())
        if self.temp_file is not None:
            temp_file: IO[bytes] = self.temp_file
            temp_file.seek(0)
            target = files[1 if self.small_first_shard else 0]
            while piece := temp_file.read(1 << 20):
                target.write(piece)
            temp_file.close()
        else:
            self._write_tensors(files, progress)
        self.flush()
        self.state = WriterState.WEIGHTS

    def _write_tensors(self, files: List[IO[bytes]], progress: bool) -> None:
        bar = None
        if progress:
            from tqdm import tqdm  # type: ignore[import-untyped]

            total = sum(info.nbytes for file in self.tensors for info in file.values())
            bar = tqdm(desc="Writing", total=total, unit="byte", unit_scale=True)
        for file, tensors in zip(files, self.tensors):
            for name, info in tensors.items():
                start = file.tell()
                _write(info.tensor, file)
                if file.tell() - start != info.nbytes:
                    raise ValueError(f"tensor {name!r} wrote {file.tell() - start} bytes, expected {info.nbytes}")
                self.write_padding(file, info.nbytes)
                info.tensor = None
                if bar is not None:
                    bar.update(info.nbytes)

    def flush(self) -> None:
        """Flush the files."""
        for file in self.fout or []:
            file.flush()

    def close(self) -> None:
        """Close the files."""
        for file in self.fout or []:
            file.close()
        self.fout = None

    # Encoding.

    def _pack(self, fmt: str, value: Any, skip_pack_prefix: bool = False) -> bytes:
        order = "" if skip_pack_prefix else "<" if self.endianess == GGUFEndian.LITTLE else ">"
        return struct.pack(order + fmt, value)

    def _pack_val(
        self, val: Any, vtype: GGUFValueType, add_vtype: bool, sub_type: Optional[GGUFValueType] = None
    ) -> bytes:
        head = self._pack("I", vtype) if add_vtype else b""
        if vtype in _PACKED:
            return head + self._pack(_PACKED[vtype], val)
        if vtype == GGUFValueType.STRING:
            encoded = val.encode("utf-8") if isinstance(val, str) else bytes(val)
            return head + self._pack("Q", len(encoded)) + encoded
        return head + self._pack_array(val, sub_type)

    def _pack_array(self, val: Any, sub_type: Optional[GGUFValueType]) -> bytes:
        if isinstance(val, np.ndarray) or not isinstance(val, Sequence):
            raise ValueError("Invalid GGUF metadata array, expecting sequence")
        if len(val) == 0:
            raise ValueError("Invalid GGUF metadata array. Empty array")
        kind = sub_type
        if kind is None:
            kind = GGUFValueType.UINT8 if isinstance(val, bytes) else _common_type(val)
        head = self._pack("I", kind) + self._pack("Q", len(val))
        if kind == GGUFValueType.STRING:
            return head + _native.pack_strings(val, self.endianess == GGUFEndian.BIG)
        if kind in _PACKED:
            order = "<" if self.endianess == GGUFEndian.LITTLE else ">"
            return head + struct.pack(f"{order}{len(val)}{_PACKED[kind]}", *val)
        return head + b"".join(self._pack_val(item, kind, add_vtype=False) for item in val)

    @staticmethod
    def format_n_bytes_to_str(num: int) -> str:
        """Format a size."""
        if num == 0:
            return "negligible - metadata only"
        size = float(num)
        for unit in ("", "K", "M", "G"):
            if size < 1000:
                return f"{size:3.1f}{unit}"
            size /= 1000
        return f"{size:.1f}T - over 1TB, split recommended"


#: Marks a tensor whose data has been written.
_WRITTEN = object()


def _write(tensor: Any, file: Any) -> None:
    if isinstance(tensor, np.ndarray) and not hasattr(file, "fileno"):
        file.write(tensor.tobytes())
    else:
        tensor.tofile(file)


def _common_type(values: Sequence[Any]) -> GGUFValueType:
    # Check one value per Python type: a vocabulary has many values, but few types.
    kinds: Dict[type, Any] = {}
    for value in values:
        kinds.setdefault(type(value), value)
    found = {GGUFValueType.get_type(value) for value in kinds.values()}
    if len(found) != 1:
        raise ValueError("All items in a GGUF array should be of the same type")
    return found.pop()


def _method(name: str, row: Dict[str, Any]) -> Callable[..., None]:
    """Return the method of a table row. It sets one key, whose name may contain a number."""
    scalar = GGUFValueType[row["scalar"]] if row["scalar"] else None
    elements = GGUFValueType[row["elements"]] if row["elements"] else None
    parameters = row["parameters"]

    def add(self: GGUFWriter, *args: Any, **kwargs: Any) -> None:
        arguments = dict(zip(parameters, args))
        if len(args) > len(parameters) or set(kwargs) != set(parameters[len(args) :]):
            raise TypeError(f"{name}() takes {', '.join(parameters)}")
        arguments.update(kwargs)
        value: Any = arguments[parameters[-1]]
        key = row["key"].replace("{arch}", self.arch).replace("{id}", str(arguments[parameters[0]]))
        if isinstance(value, Enum):
            value = value.value
        is_number = issubclass(type(value), (bool, int, float, np.number))
        if scalar is None or (row["array"] and not is_number):
            if elements is None:
                self.add_array(key, value)
            else:
                self.add_key_value(key, value, GGUFValueType.ARRAY, elements)
        elif scalar == GGUFValueType.STRING:
            self.add_string(key, value)
        else:
            self.add_key_value(key, value, scalar)

    add.__name__, add.__qualname__ = name, f"GGUFWriter.{name}"
    add.__doc__ = f"Set ``{row['key']}``."
    return add


def _typed_method(kind: GGUFValueType) -> Callable[[GGUFWriter, str, Any], None]:
    def add(self: GGUFWriter, key: str, val: Any) -> None:
        self.add_key_value(key, val, kind)

    add.__doc__ = f"Set a key to a value of type {kind.name}."
    return add


for _kind in _PACKED:
    setattr(GGUFWriter, f"add_{_kind.name.lower()}", _typed_method(_kind))
for _name, _row in _TABLE["writer"].items():
    setattr(GGUFWriter, _name, _method(_name, _row))
