"""Models from before GGUF, converted and run by today's llama.cpp (llama-cpp-python).

Usage: python legacy_logits.py GGUF_BINARY LEGACY_DIR

LEGACY_DIR has a folder per architecture with old files, and in its `ref` the logits that the
program of the time computed. Today's programs quantize activations in other ways, so quantized
models differ by some hundredths; the files of March 2023 by more, because their programs quantized
activations to four bits. A wrong name, order or scale would show as differences of the size of the
logits.
"""

import ctypes
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp as lib
import numpy as np

# Without what their files lost, llama.cpp does not load these.
FOLDERS = {
    "bloom": "bloom/source",
    "dollyv2": "gptneox-parallel/source",
    "dollyv2-noparres": "gptneox-parallel/source",
    "gptneox-parallel": "gptneox-parallel/source",
    "gptneox-sequential": "gptneox-sequential/source",
}

# Relative to the spread of the logits.
USUAL = 0.02
FOUR_BIT_ACTIVATIONS = {"ggml-q4_0": 0.1, "ggmf1-q4_0": 0.1}


@lib.llama_log_callback
def silent(_level, _text, _user_data):
    pass


def logits(path, tokens):
    """Logits of every position, [position, vocabulary]."""
    params = lib.llama_model_default_params()
    params.n_gpu_layers = 0
    # Weights laid out for the processor need instructions that not every one has.
    params.use_extra_bufts = False
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    assert model, f"{path} is not loaded"
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = 128
    context = lib.llama_init_from_model(model, params)
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.logits[i] = token, i, 1
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
    assert lib.llama_decode(context, batch) == 0
    size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    rows = [
        np.ctypeslib.as_array(lib.llama_get_logits_ith(context, i), shape=(size,)).copy()
        for i in range(len(tokens))
    ]
    lib.llama_free(context)
    lib.llama_model_free(model)
    return np.array(rows)


def main(binary, data):
    lib.llama_backend_init()
    lib.llama_log_set(silent, ctypes.c_void_p(0))
    bad = 0
    for reference in sorted(data.glob("*/ref/*.logits.npy")):
        stem = reference.name.removesuffix(".logits.npy")
        folder = reference.parent.parent
        old = folder / f"{stem}.bin"
        # llama.cpp does not run gptj.
        if not old.is_file() or folder.name == "gptj":
            continue
        tokens = json.loads((reference.parent / f"{stem}.json").read_text())["tokens_fed"]
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "model.gguf"
            command = [binary, "convert", old, "-o", out]
            if folder.name in FOLDERS:
                command += ["--metadata-dir", data / FOLDERS[folder.name]]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{old}: {done.stderr}"
            found = logits(out, tokens)
        wanted = np.load(reference)
        difference = np.sqrt(np.mean((found[: len(wanted)] - wanted) ** 2)) / wanted.std()
        same = np.mean(found[: len(wanted)].argmax(1) == wanted.argmax(1))
        fits = difference < FOUR_BIT_ACTIVATIONS.get(stem, USUAL)
        bad += not fits
        print(
            f"{folder.name:19} {stem:24} differs by {difference:.5f} of the spread, "
            f"{same:4.0%} of top tokens equal{'' if fits else '  TOO MUCH'}",
            flush=True,
        )
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
