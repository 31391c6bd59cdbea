"""Measures how long readers take to open a file with a large vocabulary.

Usage: python interop/speed/opening.py GGUF_BINARY

Writes two models with tiny tensors and the vocabulary sizes of Llama 3 and Gemma 3, and opens each from the page cache with

- `gguf inspect`: the whole process with its output; for comparison a process that does nothing, and `gguf --version`;
- `gguf_init_from_file` and `gguf_free` of llama.cpp's library;
- `gguf.GGUFReader`, in a Python process that has loaded the package.

Prints the minimum of many runs, and one run of the Python reader, which takes seconds. Processes are measured in wall time, calls in
CPU time. Needs gguf; llama-cpp-python is optional.
"""

import argparse
import ctypes
import importlib.util
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFWriter

MODELS = (
    # name, architecture, tokenizer, tokens, with scores, merges, blocks
    ("128k", "llama", "gpt2", 128_256, False, 280_147, 32),
    ("262k", "gemma3", "llama", 262_144, True, 514_906, 48),
)
BLOCK_TENSORS = "attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate ffn_up ffn_down"


def write(path, architecture, tokenizer, n_tokens, scores, n_merges, n_blocks):
    """Writes a model with a vocabulary of random words, and returns the length of its header."""
    pick = random.Random(n_tokens)
    word = lambda longest: "".join(pick.choices("abcdefghijklmnopqrstuvwxyz", k=pick.randint(1, longest)))
    # Numbered, because tokens must be unique; every third begins with a space.
    token = lambda i: ("Ġ" if i % 3 == 0 else "") + f"{i:x}{word(3)}"
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(n_blocks)
    writer.add_context_length(131_072)
    writer.add_embedding_length(4096)
    writer.add_feed_forward_length(14_336)
    writer.add_head_count(32)
    writer.add_head_count_kv(8)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model(tokenizer)
    writer.add_token_list([token(i) for i in range(n_tokens)])
    if scores:
        writer.add_token_scores([-1.0] * n_tokens)
    writer.add_token_types([1] * n_tokens)
    writer.add_token_merges([f"{word(9)} {word(9)}" for _ in range(n_merges)])
    names = ["token_embd", "output", "output_norm"]
    for block in range(n_blocks):
        names += [f"blk.{block}.{name}" for name in BLOCK_TENSORS.split()]
    data = np.zeros((2, 32), np.float32)
    for name in names:
        writer.add_tensor(f"{name}.weight", data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.stat().st_size - len(names) * data.nbytes


def least(work, runs, clock):
    """Returns the minimum time of the work, in milliseconds."""
    times = []
    for _ in range(runs):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times) * 1e3


def process(*command):
    """Returns the minimum wall time of a process."""
    run = lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return least(run, 100, time.perf_counter)


def call(work, runs):
    """Returns the minimum CPU time of a call."""
    return least(work, runs, time.process_time)


class InitParams(ctypes.Structure):
    """`struct gguf_init_params`, to read the header only."""

    _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p)]


def official_cpp():
    """Returns llama.cpp's reader from the library in llama-cpp-python, if that is installed."""
    package = importlib.util.find_spec("llama_cpp")
    found = package and sorted(Path(package.submodule_search_locations[0]).rglob("*ggml-base.*"))
    if not found:
        print("SKIPPED: the C++ reader: llama-cpp-python is not installed", file=sys.stderr)
        return None
    library = ctypes.CDLL(str(found[0]))
    library.gguf_init_from_file.argtypes = [ctypes.c_char_p, InitParams]
    library.gguf_init_from_file.restype = ctypes.c_void_p
    library.gguf_free.argtypes = [ctypes.c_void_p]

    def read(path):
        context = library.gguf_init_from_file(bytes(path), InitParams(True, None))
        assert context, path
        library.gguf_free(context)

    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    binary = parser.parse_args().gguf
    cpp = official_cpp()
    readers = ["a process that does nothing", "gguf --version", "gguf inspect"]
    readers += ["gguf_init_from_file"] * bool(cpp) + ["gguf.GGUFReader"]
    rows = {reader: [] for reader in readers}
    with tempfile.TemporaryDirectory() as folder:
        for name, *sizes in MODELS:
            path = Path(folder) / f"{name}.gguf"
            header = write(path, *sizes)
            rows["a process that does nothing"].append(process(shutil.which("true")))
            rows["gguf --version"].append(process(binary, "--version"))
            rows["gguf inspect"].append(process(binary, "inspect", path))
            if cpp:
                rows["gguf_init_from_file"].append(call(lambda: cpp(path), 20))
            rows["gguf.GGUFReader"].append(call(lambda: GGUFReader(path), 1))
            print(f"{name}: {sizes[2]} tokens, {sizes[4]} merges, header of {header / 1e6:.1f} MB")
    print(f"\n{'milliseconds':<30}" + "".join(f"{name:>12}" for name, *_ in MODELS))
    for reader, times in rows.items():
        print(f"{reader:<30}" + "".join(f"{ms:>12.2f}" for ms in times))


if __name__ == "__main__":
    main()
