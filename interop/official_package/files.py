"""Tests files with the Python package `gguf` from PyPI.

Usage: python interop/official_package/files.py GGUF_BINARY CHECKPOINT_DIR

The package's reader opens files of gguf-kit in all types; gguf-kit opens files of the package's writer, among them the example of
the format's tutorial. Needs gguf.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import dequantize

PRESETS = (
    "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K"
).split()


def ours(binary, *args):
    """Runs the binary and returns its standard output."""
    done = subprocess.run([binary, *args], capture_output=True, text=True)
    assert done.returncode == 0, f"gguf {' '.join(args)}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


def check_written(path, listing, original):
    """Checks that the package's reader agrees with `gguf inspect`, and that values are near those of the original."""
    reader = GGUFReader(path)
    assert list(listing["metadata"]) == [k for k in reader.fields if not k.startswith("GGUF.")]
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    assert len(tokens) == listing["tokenizer"]["tokens"]
    assert len(reader.tensors) == len(listing["tensors"])
    for tensor, expected in zip(reader.tensors, listing["tensors"]):
        assert tensor.name == expected["name"]
        assert [int(n) for n in tensor.shape] == expected["shape"]
        assert tensor.tensor_type.name == expected["type"]
        assert tensor.n_bytes == expected["bytes"]
        assert tensor.data_offset == reader.data_offset + expected["offset"]
        values = dequantize(tensor.data, tensor.tensor_type).ravel()
        if original is None:
            continue
        error = np.linalg.norm(values - original[tensor.name]) / np.linalg.norm(original[tensor.name])
        # With two bits the error is a third of the norm.
        assert error < 0.4, f"{path}: {tensor.name} is off by {error:.2f} of its norm"
    return {t.name: dequantize(t.data, t.tensor_type).ravel() for t in reader.tensors}


def official_reads_ours(binary, checkpoint, folder):
    original = None
    types = set()
    for preset in PRESETS:
        path = folder / f"{preset}.gguf"
        ours(binary, "convert", checkpoint, "-o", str(path), "--outtype", preset)
        listing = json.loads(ours(binary, "inspect", str(path), "--json"))
        values = check_written(path, listing, original)
        original = original or values
        types |= {tensor["type"] for tensor in listing["tensors"]}
    # `gguf quantize --pure`: one type for all tensors.
    for ty in sorted(types):
        path = folder / f"pure-{ty}.gguf"
        ours(binary, "quantize", "--pure", str(folder / "F32.gguf"), str(path), ty)
        listing = json.loads(ours(binary, "inspect", str(path), "--json"))
        check_written(path, listing, original)
    print(f"the package's reader opens {len(PRESETS)} presets and {len(types)} types")


def tutorial_example(path):
    """Writes the example of the package's documentation."""
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(12)
    writer.add_uint32("answer", 42)
    writer.add_float32("answer_in_float", 42.0)
    writer.add_custom_alignment(64)
    writer.add_tensor("tensor1", np.ones((32,), dtype=np.float32) * 100.0)
    writer.add_tensor("tensor2", np.ones((64,), dtype=np.float32) * 101.0)
    writer.add_tensor("tensor3", np.ones((96,), dtype=np.float32) * 102.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def every_value(path):
    """Writes a key of every type that the package's writer has."""
    writer = GGUFWriter(path, "test")
    for name in "uint8 int8 uint16 int16 uint32 int32 uint64 int64".split():
        getattr(writer, f"add_{name}")(f"a.{name}", 7)
    writer.add_float32("a.float32", 1.5)
    writer.add_float64("a.float64", 2.5)
    writer.add_bool("a.bool", True)
    writer.add_string("a.string", "grüße")
    writer.add_array("a.strings", ["x", "", "日本"])
    writer.add_array("a.numbers", [1, 2, 3])
    writer.add_array("a.floats", [0.5, 0.25])
    writer.add_array("a.bools", [True, False])
    writer.add_tensor("t", np.arange(12, dtype=np.float16).reshape(3, 4))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# Errors of files that are valid GGUF but lack parts of a model.
MODEL_ERRORS = {"key-missing", "tensor-missing", "layer-count", "tokenizer-missing"}


def we_read_official(binary, folder):
    path = str(folder / "example.gguf")
    tutorial_example(path)
    example = json.loads(ours(binary, "inspect", path, "--json"))
    assert example["architecture"] == "llama" and example["block_count"] == 12
    assert example["metadata"]["answer"] == {"type": "UINT32", "value": 42}
    assert example["metadata"]["answer_in_float"] == {"type": "FLOAT32", "value": 42.0}
    assert example["metadata"]["general.alignment"]["value"] == 64
    assert [t["name"] for t in example["tensors"]] == ["tensor1", "tensor2", "tensor3"]
    assert all(t["offset"] % 64 == 0 for t in example["tensors"])
    run = subprocess.run([binary, "check", path, "--json"], capture_output=True, text=True)
    findings = json.loads(run.stdout)["findings"]
    errors = {f["code"] for f in findings if f["severity"] == "error"}
    assert run.returncode == 1 and errors <= MODEL_ERRORS, findings

    path = str(folder / "values.gguf")
    every_value(path)
    values = json.loads(ours(binary, "inspect", path, "--json", "--arrays"))["metadata"]
    assert values["a.int8"] == {"type": "INT8", "value": 7}
    assert values["a.float64"] == {"type": "FLOAT64", "value": 2.5}
    assert values["a.string"]["value"] == "grüße"
    assert values["a.strings"] == {
        "type": "ARRAY", "element_type": "STRING", "value": ["x", "", "日本"]
    }
    assert values["a.bools"]["value"] == [True, False]
    # The package's reader finds the same in a copy of gguf-kit.
    copy = str(folder / "copy.gguf")
    ours(binary, "quantize", path, copy, "COPY")
    before, after = GGUFReader(path), GGUFReader(copy)
    for key, field in before.fields.items():
        assert field.contents() == after.fields[key].contents(), key
    assert (before.tensors[0].data == after.tensors[0].data).all()
    assert before.tensors[0].tensor_type == GGMLQuantizationType.F16
    print("gguf-kit opens the files of the package's writer")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("checkpoint")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        official_reads_ours(options.gguf, options.checkpoint, Path(folder))
        we_read_official(options.gguf, Path(folder))


if __name__ == "__main__":
    main()
