"""Reads models after edits, splits, merges and byte order conversions with the Python package `gguf` from PyPI.

Usage: python interop/official_package/operations.py GGUF_BINARY CHECKPOINT_DIR

The package's reader must agree with `gguf inspect`, and the package's byte order converter must write the same file. Needs gguf.
"""

import argparse
import builtins
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from gguf import GGUFReader
from gguf.scripts import gguf_convert_endian


def ours(binary, *args):
    """Runs the binary and returns its standard output."""
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"gguf {' '.join(map(str, args))}: {done.stderr}"
    return done.stdout


def check_listing(binary, path):
    """Checks that the package's reader and `gguf inspect` agree on keys, values and tensors, and returns the reader."""
    reader = GGUFReader(path)
    listing = json.loads(ours(binary, "inspect", path, "--json", "--arrays"))
    fields = {k: v for k, v in reader.fields.items() if not k.startswith("GGUF.")}
    assert list(fields) == list(listing["metadata"]), path
    for key, field in fields.items():
        theirs, ours_ = field.contents(), listing["metadata"][key]["value"]
        if isinstance(theirs, float):
            theirs, ours_ = np.float32(theirs), np.float32(ours_)
        if isinstance(theirs, list) and theirs and isinstance(theirs[0], float):
            theirs, ours_ = np.float32(theirs).tolist(), np.float32(ours_).tolist()
        assert theirs == ours_, f"{path}: {key}: {theirs} {ours_}"
    for theirs, tensor in zip(reader.tensors, listing["tensors"], strict=True):
        assert theirs.name == tensor["name"] and theirs.tensor_type.name == tensor["type"], path
        assert [int(n) for n in theirs.shape] == tensor["shape"], path
        assert theirs.data_offset == reader.data_offset + tensor["offset"], path
    return reader


def swap_byte_order(binary, source, folder):
    """Compares the byte order conversion with that of the package."""
    theirs, mine = folder / "theirs.gguf", folder / "mine.gguf"
    shutil.copy(source, theirs)
    reader = GGUFReader(theirs, "r+")

    class Args:
        order = "big"
        dry_run = False
        verbose = False

    original, builtins.input = builtins.input, lambda *_: "YES"
    try:
        gguf_convert_endian.convert_byteorder(reader, Args())
    finally:
        builtins.input = original
    reader.data.flush()
    del reader
    ours(binary, "convert-endian", source, "big", "-o", mine, "--force")
    assert theirs.read_bytes() == mine.read_bytes(), f"{source}: byte orders differ"
    check_listing(binary, mine)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("checkpoint")
    options = parser.parse_args()
    binary, checkpoint = options.gguf, options.checkpoint
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        f16 = folder / "f16.gguf"
        ours(binary, "convert", checkpoint, "-o", f16, "--outtype", "f16")
        for preset in "f16 q8_0 q4_0".split():
            path = folder / f"{preset}-model.gguf"
            ours(binary, "quantize", f16, path, preset)
            check_listing(binary, path)
        # The package's converter supports F16, Q8_0, Q4_0 and Q6_K, the type of the output matrix here.
        for preset in "f16 q8_0 q4_0".split():
            swap_byte_order(binary, folder / f"{preset}-model.gguf", folder)
        edited = folder / "edited.gguf"
        ours(binary, "edit", f16, "-o", edited, "--set", "general.name=Größe", "--set", "a.b:i8=-3")
        assert check_listing(binary, edited).fields["general.name"].contents() == "Größe"
        for text in ("short", "long " * 3000, ""):
            ours(binary, "edit", edited, "--set", f"general.description={text}")
            reader = check_listing(binary, edited)
            assert reader.fields["general.description"].contents() == text
        ours(binary, "split", edited, folder / "part", "--split-max-tensors", "10")
        shards = sorted(folder.glob("part-*.gguf"))
        assert sum(len(GGUFReader(shard).tensors) for shard in shards) == len(reader.tensors)
        merged = folder / "merged.gguf"
        ours(binary, "merge", shards[1], merged)
        check_listing(binary, merged)
        for version in ("2", "3"):
            other = folder / f"v{version}.gguf"
            ours(binary, "convert-endian", f16, "little", "-o", other, "--gguf-version", version)
            reader = check_listing(binary, other)
            assert reader.fields["GGUF.version"].contents() == int(version)
    print("the package's reader agrees after all operations")


if __name__ == "__main__":
    main()
