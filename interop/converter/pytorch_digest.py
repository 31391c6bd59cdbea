#!/usr/bin/env python3
"""A digest of all weights in a PyTorch file, read with Python's own zip and pickle modules.

usage: pytorch_weights.py pytorch_model.bin

Prints what the test `a_whole_model_is_what_python_reads` of crates/convert expects: the SHA-256 of
name, GGUF type, shape and bytes of every tensor. torch is not needed; calls are stood in for.
"""

import collections
import hashlib
import pickle
import sys
import zipfile

TYPES = {
    "FloatStorage": ("F32", 4),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "LongStorage": ("I64", 8),
}


def rebuild(storage, offset, size, stride, *_):
    (name, width), data = storage
    expected = 1
    for length, step in zip(reversed(size), reversed(stride)):
        assert length == 1 or step == expected, "not contiguous"
        expected *= length
    return name, list(size), data[offset * width : (offset + expected) * width]


class Unpickler(pickle.Unpickler):
    def __init__(self, archive, prefix):
        super().__init__(archive.open(prefix + "data.pkl"))
        self.archive, self.prefix = archive, prefix

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return rebuild
        if module == "torch" and name in TYPES:
            return TYPES[name]
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, identity):
        _, kind, key, _, _ = identity
        return kind, self.archive.read(f"{self.prefix}data/{key}")


def main():
    with zipfile.ZipFile(sys.argv[1]) as archive:
        prefix = next(n for n in archive.namelist() if n.endswith("data.pkl"))[: -len("data.pkl")]
        weights = Unpickler(archive, prefix).load()
    digest = hashlib.sha256()
    for name, (kind, shape, data) in weights.items():
        digest.update(f"{name} {kind} {shape}\n".encode())
        digest.update(data)
    print(digest.hexdigest())


main()
