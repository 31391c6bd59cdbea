"""Trained models of other people, run by `gguf` and by llama.cpp: do they say the same?

Usage: python real_models_run.py GGUF_BINARY TEXT MODEL.gguf... [--tokens 2000]

Of the first tokens of TEXT, in windows of 500: how often the most likely next token is the same, and
the divergence (Kullback-Leibler) of the predictions.

llama.cpp rounds activations to 8 bits where weights are quantized, as `fast` does. The truth is
therefore what it says of the same weights in F32, the twin of the model, which it does not round:
`exact` has to be there, and `fast` no farther from there than llama.cpp itself.

Needs numpy and llama-cpp-python.
"""

import argparse
import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp as lib
import numpy as np

WINDOW = 500
# Divergence of `exact` from the truth at most: sums of F32 in another order.
EXACT = 1e-5
# Divergence of `fast` at most, in parts of llama.cpp's own: both round, each in its way.
FAST = 1.2


@lib.llama_log_callback
def silent(_level, _text, _user_data):
    pass


class Official:
    """llama.cpp with a model, keys and values in F32."""

    def __init__(self, path):
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0
        params.use_extra_bufts = False
        self.model = lib.llama_model_load_from_file(str(path).encode(), params)
        assert self.model, f"llama.cpp does not load {path}"
        self.vocabulary = lib.llama_model_get_vocab(self.model)
        self.size = lib.llama_vocab_n_tokens(self.vocabulary)

    def tokens(self, text):
        data = text.encode()
        ids = (lib.llama_token * (len(data) + 8))()
        count = lib.llama_tokenize(self.vocabulary, data, len(data), ids, len(ids), True, False)
        return list(ids[:count])

    def logits(self, ids):
        params = lib.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = len(ids)
        params.type_k = params.type_v = lib.GGML_TYPE_F32
        params.n_threads = params.n_threads_batch = 2
        context = lib.llama_init_from_model(self.model, params)
        batch = lib.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.logits[i] = token, i, 1
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
        assert lib.llama_decode(context, batch) == 0
        every = np.ctypeslib.as_array(lib.llama_get_logits(context), shape=(len(ids), self.size)).copy()
        lib.llama_batch_free(batch)
        lib.llama_free(context)
        return every


def ours(binary, model, ids, arithmetic, folder):
    out = folder / "logits.npy"
    command = [binary, "logits", model, "--ids", " ".join(map(str, ids)), "-o", out, "--force"]
    command += ["--precision", arithmetic, "--cache-type", "f32"]
    subprocess.run(command, check=True, capture_output=True)
    return np.load(out)


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def divergence(truth, other):
    return (np.exp(truth) * (truth - other)).sum(-1)


def windows(official, text, tokens):
    """The ids of the text, by windows that begin as a text does."""
    ids = official.tokens(text)[:tokens]
    first = ids[:1] if lib.llama_vocab_get_add_bos(official.vocabulary) else []
    for start in range(0, len(ids), WINDOW):
        yield (first if start else []) + ids[start : start + WINDOW]


def compare(binary, text, path, tokens, folder):
    twin = folder / "twin.gguf"
    command = [binary, "quantize", "--allow-requantize", "--force", path, twin, "F32"]
    subprocess.run(command, check=True, capture_output=True)
    quantized, exact = Official(path), Official(twin)
    apart = {}
    same = {}

    def note(name, truth, other):
        apart.setdefault(name, []).extend(divergence(truth, other))
        same.setdefault(name, []).extend(truth.argmax(-1) == other.argmax(-1))

    for window in windows(quantized, text, tokens):
        truth = log_softmax(exact.logits(window))
        theirs = log_softmax(quantized.logits(window))
        made = {how: log_softmax(ours(binary, path, window, how, folder)) for how in ("exact", "fast")}
        note("llama.cpp from its F32 twin", truth, theirs)
        for how in made:
            note(f"{how} from the F32 twin", truth, made[how])
            note(f"{how} from llama.cpp", theirs, made[how])
    for name in apart:
        print(f"{Path(path).name:36} {name:28} same top token {np.mean(same[name]):7.2%}, divergence "
              f"mean {np.mean(apart[name]):.2e}, median {np.median(apart[name]):.2e}", flush=True)
    mean = {name: np.mean(apart[name]) for name in apart}
    return (
        mean["exact from the F32 twin"] <= EXACT
        and mean["fast from the F32 twin"] <= FAST * mean["llama.cpp from its F32 twin"]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("text")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--tokens", type=int, default=2000)
    args = parser.parse_args()
    lib.llama_log_set(silent, ctypes.c_void_p(0))
    lib.llama_backend_init()
    text = Path(args.text).read_text()
    with tempfile.TemporaryDirectory() as folder:
        good = [compare(args.binary, text, model, args.tokens, Path(folder)) for model in args.models]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
