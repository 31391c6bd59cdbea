"""Prints a digest of all weights in a PyTorch file, read with Python's own zip and pickle modules.

Usage: python3 interop/converter/pytorch_digest.py pytorch_model.bin

A test of crates/convert (`formats/pytorch.rs`) expects this SHA-256 of the name, GGUF type, shape and bytes of all tensors. It
replaces the calls of torch that a pickle contains, and does not need torch.
"""

import argparse
import collections
import hashlib
import pickle
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    options = parser.parse_args()
    with zipfile.ZipFile(options.file) as archive:
        prefix = next(n for n in archive.namelist() if n.endswith("data.pkl"))[: -len("data.pkl")]
        weights = Unpickler(archive, prefix).load()
    digest = hashlib.sha256()
    for name, (kind, shape, data) in weights.items():
        digest.update(f"{name} {kind} {shape}\n".encode())
        digest.update(data)
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
