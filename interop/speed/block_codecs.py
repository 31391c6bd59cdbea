"""Measures encoding and decoding of all types beside llama.cpp: one thread, in cache.

Usage: python interop/speed/block_codecs.py GGML_LIBRARY [TYPE ...] [--isa SET] [--runs N] [--bench PROGRAM]

GGML_LIBRARY is `libggml-base.so` of `llama-cpp-python` from PyPI (in the folder `llama_cpp/lib`). Measures
`ggml_quantize_chunk` and `to_float` alternately with the benchmark `codecs` of crates/quant, on rows of the same kind and length,
and prints the maximum of million weights per second of all runs, and the ratio. `--bench` names that benchmark if it is already
built; otherwise `cargo bench` runs it. Needs `gguf` and `numpy` from PyPI.
"""

import argparse
import ctypes
import subprocess
import time

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

COLUMNS = 4096
SECONDS = 0.1
FLOATS = ctypes.POINTER(ctypes.c_float)
COUNT = ctypes.c_int64
PARTS = ["encode", "with weights", "decode"]


class Traits(ctypes.Structure):
    """`ggml_type_traits`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("block_size", COUNT),
        ("interleaved_block_size", COUNT),
        ("type_size", ctypes.c_size_t),
        ("is_quantized", ctypes.c_bool),
        ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, FLOATS, COUNT)),
        ("from_float", ctypes.c_void_p),
    ]


def least(call):
    call()
    start, best = time.perf_counter(), 1e9
    while time.perf_counter() - start < SECONDS:
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def load(path):
    library = ctypes.CDLL(path)
    library.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
    library.ggml_quantize_requires_imatrix.restype = ctypes.c_bool
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [
        *[ctypes.c_int, FLOATS, ctypes.c_void_p, COUNT, COUNT, COUNT, FLOATS]
    ]
    return library


def official(library, name):
    """Returns million weights per second, without the overhead of a call from Python."""
    rng = np.random.default_rng(1)
    row = (rng.random((4, COLUMNS), dtype=np.float32) - 0.5).sum(axis=0, dtype=np.float32)
    weights = rng.random(COLUMNS, dtype=np.float32) + np.float32(0.5)
    out = np.zeros_like(row)
    row, weights, out = (a.ctypes.data_as(FLOATS) for a in [row, weights, out])
    keep = row._arr, weights._arr, out._arr

    ty = GGMLQuantizationType[name]
    block_len, block_bytes = GGML_QUANT_SIZES[ty]
    encoded = ctypes.create_string_buffer(COLUMNS // block_len * block_bytes)
    to_float = library.ggml_get_type_traits(ty).contents.to_float
    overhead = least(lambda: to_float(encoded, out, 0)) if to_float else 0

    def speed(call):
        return COLUMNS / (least(call) - overhead) / 1e6

    def encode(weights):
        return lambda: library.ggml_quantize_chunk(ty, row, encoded, 0, 1, COLUMNS, weights)

    plain = not library.ggml_quantize_requires_imatrix(ty)
    speeds = [
        speed(encode(None)) if plain else float("nan"),
        speed(encode(weights)),
        speed(lambda: to_float(encoded, out, COLUMNS)) if to_float else float("nan"),
    ]
    del keep
    return speeds


def ours(program, name, isa):
    command = [*program, name] + (["--isa", isa] if isa else [])
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        fields = line.split()
        if fields and fields[0] == name:
            return [float(field) for field in fields[1:4]]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("types", nargs="*")
    parser.add_argument("--isa")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--bench")
    args = parser.parse_intermixed_args()
    bench = "cargo bench -q -p gguf-quant --bench codecs --".split()
    program = [args.bench] if args.bench else bench
    library = load(args.library)
    # Types that llama.cpp encodes.
    known = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S"
    known += " IQ3_XXS IQ3_S IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0 F16 BF16"
    print("million weights per second, and the ratio of gguf-kit to llama.cpp")
    print(f"{'type':<9}" + "".join(f"{part:>13}{'llama.cpp':>11}{'ratio':>7}" for part in PARTS))
    for name in args.types or known.split():
        pairs = [(ours(program, name, args.isa), official(library, name)) for _ in range(args.runs)]
        if pairs[0][0] is None:
            continue
        mine, theirs = ([max(values) for values in zip(*runs)] for runs in zip(*pairs))
        cells = (f"{a:>13,.0f}{b:>11,.0f}{a / b:>7.1f}" for a, b in zip(mine, theirs))
        print(f"{name:<9}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
