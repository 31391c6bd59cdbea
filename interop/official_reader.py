"""llama.cpp's reader opens what we write, and finds what we say is in it.

Usage: python official_reader.py GGML_LIBRARY GGUF_BINARY CHECKPOINT_DIR

GGML_LIBRARY is `libggml-base.so`, as it is installed with `llama-cpp-python` from PyPI (in the
folder `llama_cpp/lib`). That reader knows version 2 and 3 in the byte order of the machine.
"""

import ctypes
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# Value types of the format, with the C type of their elements.
SCALARS = {
    0: ("u8", ctypes.c_uint8),
    1: ("i8", ctypes.c_int8),
    2: ("u16", ctypes.c_uint16),
    3: ("i16", ctypes.c_int16),
    4: ("u32", ctypes.c_uint32),
    5: ("i32", ctypes.c_int32),
    6: ("f32", ctypes.c_float),
    7: ("bool", ctypes.c_bool),
    10: ("u64", ctypes.c_uint64),
    11: ("i64", ctypes.c_int64),
    12: ("f64", ctypes.c_double),
}
STRING, ARRAY = 8, 9


class Parameters(ctypes.Structure):
    _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p)]


class OfficialReader:
    """A file, as llama.cpp sees it."""

    def __init__(self, library, path):
        self.library = library
        self.context = self.call(
            ctypes.c_void_p, "init_from_file", str(path).encode(), Parameters(True, None)
        )
        assert self.context, f"{path}: llama.cpp's reader refuses it"

    def call(self, result, name, *args):
        function = getattr(self.library, f"gguf_{name}")
        function.restype = result
        return function(*args)

    def get(self, result, name, *args):
        args = [ctypes.c_int64(a) if isinstance(a, int) else a for a in args]
        return self.call(result, f"get_{name}", ctypes.c_void_p(self.context), *args)

    def value(self, i):
        kind = self.get(ctypes.c_int, "kv_type", i)
        if kind == STRING:
            return self.get(ctypes.c_char_p, "val_str", i).decode()
        if kind != ARRAY:
            name, ctype = SCALARS[kind]
            return self.get(ctype, f"val_{name}", i)
        kind, n = self.get(ctypes.c_int, "arr_type", i), self.get(ctypes.c_size_t, "arr_n", i)
        if kind == STRING:
            string = lambda j: self.get(ctypes.c_char_p, "arr_str", i, ctypes.c_size_t(j))
            return [string(j).decode() for j in range(n)]
        data = self.get(ctypes.c_void_p, "arr_data", i)
        return list((SCALARS[kind][1] * n).from_address(data)) if n else []

    def metadata(self):
        keys = range(self.get(ctypes.c_int64, "n_kv"))
        return {self.get(ctypes.c_char_p, "key", i).decode(): self.value(i) for i in keys}

    def tensors(self):
        for i in range(self.get(ctypes.c_int64, "n_tensors")):
            yield {
                "name": self.get(ctypes.c_char_p, "tensor_name", i).decode(),
                "offset": self.get(ctypes.c_size_t, "tensor_offset", i),
                "type": self.get(ctypes.c_int, "tensor_type", i),
                "size": self.get(ctypes.c_size_t, "tensor_size", i),
            }

    def close(self):
        self.call(None, "free", ctypes.c_void_p(self.context))


def ours(binary, *args):
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"gguf {' '.join(map(str, args))}: {done.stderr}"
    return done.stdout


def plain(value):
    """A value without the difference between a float and its shortest text."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    return np.float32(value).item() if isinstance(value, float) else value


def compare(library, binary, path):
    reader = OfficialReader(library, path)
    listing = json.loads(ours(binary, "inspect", path, "--json", "--arrays"))
    theirs = reader.metadata()
    mine = {key: entry["value"] for key, entry in listing["metadata"].items()}
    assert list(theirs) == list(mine), path
    for key, value in theirs.items():
        assert plain(value) == plain(mine[key]), f"{path}: {key}: {value} {mine[key]}"
    tensors = list(reader.tensors())
    assert len(tensors) == len(listing["tensors"])
    for theirs, mine in zip(tensors, listing["tensors"]):
        for field in ["name", "offset"]:
            assert theirs[field] == mine[field], f"{path}: {theirs} {mine}"
        assert theirs["size"] == mine["bytes"], f"{path}: {theirs} {mine}"
    reader.close()
    print(f"{path.name}: {len(listing['metadata'])} keys, {len(tensors)} tensors agree")


def written_files(binary, checkpoint, folder):
    """One file of every command that writes."""
    path = lambda name: folder / f"{name}.gguf"
    model = path("f16")
    ours(binary, "convert", checkpoint, "-o", model, "--outtype", "f16")
    yield model
    for mix in "f32 bf16 q8_0 q4_0 q5_1 q2_k q3_k_m q4_k_m q6_k iq4_xs iq3_s tq1_0".split():
        ours(binary, "quantize", model, path(mix), mix)
        yield path(mix)
    edited = path("edited")
    ours(binary, "edit", model, "--set", "general.url=somewhere", "--reserve", "64K", "-o", edited)
    yield edited
    ours(binary, "edit", edited, "--set", "general.name=In place", "--remove", "general.url")
    yield edited
    ours(binary, "edit", model, "--drop", "blk.1.ffn_up.weight", "-o", path("dropped"))
    yield path("dropped")
    ours(binary, "check", model, "--fix", "-o", path("fixed"))
    yield path("fixed")
    ours(binary, "convert-endian", model, "big", "-o", path("big"))
    ours(binary, "convert-endian", path("big"), "little", "-o", path("little"))
    yield path("little")
    ours(binary, "split", model, folder / "part", "--split-max-tensors", "10")
    ours(binary, "merge", folder / "part-00002-of-00004.gguf", path("merged"))
    yield path("merged")


def compare_shards(library, binary, folder):
    """Of a sharded model `gguf inspect` shows the whole: llama.cpp's reader finds it in parts."""
    shards = [OfficialReader(library, path) for path in sorted(folder.glob("part-*.gguf"))]
    whole = json.loads(ours(binary, "inspect", folder / "part-00001-of-00004.gguf", "--json"))
    names = [tensor["name"] for shard in shards for tensor in shard.tensors()]
    assert names == [tensor["name"] for tensor in whole["tensors"]]
    for i, shard in enumerate(shards):
        metadata = shard.metadata()
        assert metadata["split.no"] == i and metadata["split.count"] == len(shards)
        assert metadata["split.tensors.count"] == len(names)
        shard.close()
    print(f"{len(shards)} shards: {len(names)} tensors agree")


def main(library, binary, checkpoint):
    library = ctypes.CDLL(library)
    with tempfile.TemporaryDirectory() as folder:
        for path in written_files(binary, checkpoint, Path(folder)):
            compare(library, binary, path)
        compare_shards(library, binary, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
