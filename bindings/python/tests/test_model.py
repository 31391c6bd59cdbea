import gc
import os
import pickle
import threading
from collections.abc import Mapping

import gguf_kit
import numpy as np
import pytest


def test_array_outlives_the_model_and_is_read_only():
    with gguf_kit.open("tiny.gguf") as model:
        tensor = model["output_norm.weight"]
        view = tensor.data
        assert tensor.is_mapped and view.dtype == np.float32 and view.shape == tensor.shape
        copy = view.copy()
    del model, tensor
    gc.collect()
    assert (view == copy).all()
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    assert not view[2:].base is None and not view[2:].flags.writeable


def test_closed_model_raises_closed_error():
    model = gguf_kit.open("tiny.gguf")
    tensor, metadata = model["output_norm.weight"], model.metadata
    model.close()
    for use in (lambda: model["x"], lambda: tensor.data, lambda: metadata["x"], lambda: len(model), model.summary):
        with pytest.raises(gguf_kit.ClosedError):
            use()
    assert model.closed and "closed" in repr(model) + repr(tensor) + repr(metadata)


def test_metadata_is_a_mapping():
    metadata = gguf_kit.open("tiny.gguf").metadata
    assert isinstance(metadata, Mapping)
    assert dict(metadata)["general.architecture"] == "llama" == dict(metadata.items())["general.architecture"]
    assert list(metadata) == metadata.keys() and len(metadata) == len(list(metadata.values()))
    assert metadata.get("nothing") is None and metadata.get("nothing", 3) == 3 and 7 not in metadata
    assert metadata.type_of("llama.context_length") == "u32"
    assert metadata.type_of("tokenizer.ggml.tokens") == "str[]"
    assert metadata["tokenizer.ggml.token_type"].dtype == np.int32
    with pytest.raises(KeyError):
        metadata["nothing"]


def test_decode_rows():
    tensor = gguf_kit.open("tiny.gguf")["token_embd.weight"]
    whole = tensor.decode()
    assert (whole == tensor.data).all() and whole.flags.writeable
    assert (tensor.decode(3) == whole[3]).all() and (tensor.decode(-1) == whole[-1]).all()
    assert (tensor.decode(slice(5, 20, 3)) == whole[5:20:3]).all()
    assert (tensor.decode(slice(None, None, -700)) == whole[::-700]).all()
    assert (tensor.decode([7, 0, 7]) == whole[[7, 0, 7]]).all()
    assert tensor.decode([]).shape == (0, 256)
    with pytest.raises(gguf_kit.NotFoundError):
        tensor.decode(len(whole))


def test_error_attributes(folder):
    (folder / "bad.gguf").write_bytes((folder / "tiny.gguf").read_bytes()[:5000])
    with pytest.raises(gguf_kit.InputError) as caught:
        gguf_kit.open("bad.gguf")
    error = caught.value
    assert isinstance(error, ValueError) and error.fault == "input" and error.code
    assert error.offset is not None and os.path.basename(error.file) == "bad.gguf" and error.message == str(error)
    with pytest.raises(FileNotFoundError) as missing:
        gguf_kit.open("none.gguf")
    assert missing.value.code == "environment" and missing.value.filename == "none.gguf"
    with pytest.raises(KeyError) as absent:
        gguf_kit.open("tiny.gguf")["output_norm.weigth"]
    assert "did you mean" in str(absent.value)


def test_pickle_reopens_the_model():
    model = gguf_kit.open("tiny.gguf")
    assert pickle.loads(pickle.dumps(model)).metadata["general.name"] == "Tiny"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_child_has_its_own_threads():
    model = gguf_kit.open("tiny.gguf")
    expected = model["token_embd.weight"].decode()
    child = os.fork()
    if child == 0:
        same = (model["token_embd.weight"].decode() == expected).all()
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_share_a_model():
    model = gguf_kit.open("tiny.gguf")
    expected = {name: model[name].decode() for name in model}
    wrong = []

    def read():
        for name, values in expected.items():
            if not (model[name].decode() == values).all():
                wrong.append(name)

    threads = [threading.Thread(target=read) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_close_during_reads():
    model = gguf_kit.open("tiny.gguf")
    tensor = model["token_embd.weight"]
    outcomes = []

    def read():
        for _ in range(30):
            try:
                outcomes.append(tensor.decode().shape)
            except gguf_kit.ClosedError:
                outcomes.append("closed")

    threads = [threading.Thread(target=read) for _ in range(3)]
    [thread.start() for thread in threads]
    model.close()
    [thread.join() for thread in threads]
    assert set(outcomes) <= {(2048, 256), "closed"} and outcomes[-1] == "closed"
