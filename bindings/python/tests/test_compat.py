import os
import shutil
import subprocess
import sys

import gguf_kit
import gguf_kit.compat as gguf
import numpy as np
import pytest


def write(path, **arguments):
    writer = gguf.GGUFWriter(path, "llama", **arguments)
    writer.add_context_length(256)
    writer.add_head_count([8, 4])
    writer.add_feed_forward_length(length=64)
    writer.add_token_list(["a", "b", b"\xff"])
    writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    writer.add_base_model_name(0, "Base")
    writer.add_custom_alignment(64)
    writer.add_tensor("a", np.arange(32, dtype=np.float32).reshape(4, 8))
    q8 = gguf.quants.quantize(np.ones((2, 32), np.float32), gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("b", q8, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("endianess", list(gguf.GGUFEndian))
def test_reader_reads_what_the_writer_writes(folder, endianess):
    write("w.gguf", endianess=endianess)
    reader = gguf.GGUFReader("w.gguf")
    contents = {name: field.contents() for name, field in reader.fields.items() if "tokens" not in name}
    assert contents["llama.attention.head_count"] == [8, 4] and contents["llama.feed_forward_length"] == 64
    assert contents["general.base_model.0.name"] == "Base" and contents["llama.rope.scaling.type"] == "linear"
    assert reader.alignment == 64 and reader.endianess == endianess
    assert [tensor.data_offset % 64 for tensor in reader.tensors] == [0, 0]
    assert (reader.tensors[0].data == np.arange(32).reshape(4, 8)).all()
    assert reader.tensors[1].tensor_type.name == "Q8_0" and reader.tensors[1].data.shape == (2, 34)
    assert reader.fields["tokenizer.ggml.tokens"].parts[-1].tolist() == [255]


def test_field_is_written_in_place():
    write("w.gguf")
    reader = gguf.GGUFReader("w.gguf", "r+")
    field = reader.get_field("llama.context_length")
    field.parts[field.data[0]][0] = 512
    del reader, field
    assert gguf.GGUFReader("w.gguf").get_field("llama.context_length").contents() == 512


def test_invalid_use_raises_errors():
    writer = gguf.GGUFWriter("x.gguf", "llama")
    writer.add_tensor("a", np.ones(3, np.float32))
    with pytest.raises(ValueError, match="Duplicated"):
        writer.add_tensor("a", np.ones(3, np.float32))
    with pytest.raises(ValueError):
        writer.add_tensor("c", np.ones(3, complex))
    with pytest.raises(ValueError):
        writer.write_kv_data_to_file()
    with pytest.raises(TypeError):
        writer.add_context_length()
    with pytest.raises(gguf.QuantError):
        gguf.quants.quantize(np.ones((2, 33), np.float32), gguf.GGMLQuantizationType.Q8_0)


def test_type_ids_equal_the_official_ones():
    from gguf_kit.compat.constants import _TABLE

    assert {ty.name: ty.value for ty in gguf.GGMLQuantizationType} == _TABLE["quantization_types"]


def test_lazy_arrays_are_computed_on_write(folder):
    array = np.arange(64, dtype=np.float32).reshape(2, 32)
    lazy = gguf.LazyNumpyTensor.from_eager(array)
    result = gguf.quants.quantize((lazy * 2).reshape(4, 16).reshape(2, 32), gguf.GGMLQuantizationType.Q8_0)
    assert result.shape == (2, 34) and result.dtype == np.uint8
    result.tofile(folder / "out")
    expected = gguf.quants.quantize(array * 2, gguf.GGMLQuantizationType.Q8_0)
    assert (folder / "out").read_bytes() == expected.tobytes()


def test_scripts_run_under_the_official_name(folder):
    """Run the scripts with the package installed as `gguf`."""
    install = [sys.executable, "-m", "gguf_kit.compat", "install", str(folder / "site")]
    subprocess.run(install, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}

    def script(name, *words):
        command = [sys.executable, "-m", f"gguf.scripts.{name}", *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    dumped = script("gguf_dump", "tiny.gguf", "--no-tensors")
    assert dumped.returncode == 0 and "general.architecture" in dumped.stdout, dumped.stderr
    shutil.copy("tiny.gguf", "copy.gguf")
    written = script("gguf_set_metadata", "copy.gguf", "llama.context_length", "77", "--force")
    assert written.returncode == 0, written.stderr
    assert gguf_kit.open("copy.gguf").metadata["llama.context_length"] == 77
    assert script("gguf_hash", "tiny.gguf", "--no-such-flag").returncode == 2
