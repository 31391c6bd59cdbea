"""Compares legacy GGML files, converted and run by llama.cpp (llama-cpp-python), with logits of the original programs.

Usage: python interop/runtime/legacy.py GGUF_BINARY LEGACY_DIR

LEGACY_DIR has a folder per architecture with files, and in its `ref` the logits that the original program computed. llama.cpp
quantizes activations in another way, so quantized models differ by some hundredths; files of March 2023 by more, because their
programs quantized activations to 4 bits. A wrong name, order or scale would show as differences of the size of the logits.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp as lib
import numpy as np

# Checkpoints whose metadata llama.cpp needs and the files lack.
METADATA = {
    "bloom": "bloom/source",
    "dollyv2": "gptneox-parallel/source",
    "dollyv2-noparres": "gptneox-parallel/source",
    "gptneox-parallel": "gptneox-parallel/source",
    "gptneox-sequential": "gptneox-sequential/source",
}

# Tolerance, in standard deviations of the logits.
TOLERANCE = 0.02
FOUR_BIT_ACTIVATIONS = {"ggml-q4_0": 0.1, "ggmf1-q4_0": 0.1}


@lib.llama_log_callback
def silent(_level, _text, _user_data):
    pass


def logits(path, tokens):
    """Returns the logits of all positions: [position, vocabulary]."""
    params = lib.llama_model_default_params()
    params.n_gpu_layers = 0
    # Repacked weights need instruction sets that not every CPU has.
    params.use_extra_bufts = False
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    assert model, f"llama.cpp does not load {path}"
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
    failed = 0
    for reference in sorted(data.glob("*/ref/*.logits.npy")):
        stem = reference.name.removesuffix(".logits.npy")
        folder = reference.parent.parent
        legacy = folder / f"{stem}.bin"
        # llama.cpp does not run gptj.
        if not legacy.is_file() or folder.name == "gptj":
            continue
        tokens = json.loads((reference.parent / f"{stem}.json").read_text())["tokens_fed"]
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "model.gguf"
            command = [binary, "convert", legacy, "-o", out]
            if folder.name in METADATA:
                command += ["--metadata-dir", data / METADATA[folder.name]]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{legacy}: {done.stderr}"
            found = logits(out, tokens)
        expected = np.load(reference)
        difference = np.sqrt(np.mean((found[: len(expected)] - expected) ** 2)) / expected.std()
        same = np.mean(found[: len(expected)].argmax(1) == expected.argmax(1))
        fits = difference < FOUR_BIT_ACTIVATIONS.get(stem, TOLERANCE)
        failed += not fits
        print(
            f"{folder.name:19} {stem:24} difference {difference:.5f} standard deviations, "
            f"{same:4.0%} top-1 agreement{'' if fits else '  FAILED'}",
            flush=True,
        )
    sys.exit(bool(failed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("data", type=Path)
    options = parser.parse_args()
    main(options.gguf, options.data)
