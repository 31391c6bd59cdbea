"""Importance matrices that `gguf imatrix` collects, beside those of llama.cpp.

Usage: python importance.py GGUF_BINARY DATA FOLDER [MIX ...]

DATA is `tiny-kjv-llama` of the reference data: a checkpoint, a text to calibrate with, the matrix that
`llama-imatrix` made of it (256 tokens a chunk), another text. Collects a matrix in FOLDER and compares

- every sum with theirs: within 0.5 %;
- every mix quantized with ours and with theirs: the divergence from the original within 2 %. With weights that
  differ that little an encoder comes to another choice now and then, and each choice changes
  predictions. So beside it stands what chance does: the same mix with their matrix, changed by random
  amounts of the size of the differences (three times; the spread of the divergences, in percent).

Needs `gguf` and `numpy` from PyPI.
"""

import json
import os
import subprocess
import sys

import gguf as format
import numpy as np

HOW = ["--ctx-size", "256", "--chunks", "64", "--json"]
MIXES = [
    "Q2_K", "Q2_K_S", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "Q5_0", "Q5_1",
    "Q5_K_S", "Q5_K_M", "Q6_K", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS",
    "IQ3_S", "IQ3_M", "IQ4_NL", "IQ4_XS",
]


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def matrix(path):
    return {tensor.name: np.array(tensor.data) for tensor in format.GGUFReader(path).tensors}


def write(source, path, tensors):
    """The same matrix with other numbers."""
    reader = format.GGUFReader(source)
    data = bytearray(reader.data)
    for tensor in reader.tensors:
        made = np.ascontiguousarray(tensors[tensor.name], np.float32).tobytes()
        data[tensor.data_offset : tensor.data_offset + len(made)] = made
    with open(path, "wb") as file:
        file.write(data)


def divergences(gguf, model, mix, matrices, text, folder):
    """Of one mix, with each matrix: a run for all of them."""
    made = []
    for number, matrix in enumerate(matrices):
        made.append(os.path.join(folder, f"mix{number}.gguf"))
        run(gguf, "quantize", model, made[-1], mix, "--force", "--imatrix", matrix)
    found = run(gguf, "divergence", "--reference", model, *made, "-f", text, *HOW)
    return [model["mean_kld"] for model in json.loads(found)["models"]]


def main():
    gguf, data, folder = sys.argv[1:4]
    mixes = sys.argv[4:] or MIXES
    os.makedirs(folder, exist_ok=True)
    model, text = os.path.join(folder, "f16.gguf"), os.path.join(data, "heldout.txt")
    run(gguf, "convert", os.path.join(data, "Tiny-KJV-Llama-4M"), "-o", model, "--outtype", "f16", "--force")
    ours, theirs = os.path.join(folder, "imatrix.gguf"), os.path.join(data, "imatrix.gguf")
    calibration = os.path.join(data, "calibration.txt")
    run(gguf, "imatrix", model, "-f", calibration, "-c", "256", "-o", ours, "--force")
    mine, wanted = matrix(ours), matrix(theirs)
    assert mine.keys() == wanted.keys(), mine.keys() ^ wanted.keys()
    off = {name: np.abs(mine[name] / wanted[name] - 1) for name in wanted}
    worst = max(off, key=lambda name: off[name].max())
    spread = np.sqrt(np.mean(np.concatenate([o.ravel() for name, o in off.items() if "counts" not in name]) ** 2))
    print(f"{len(wanted)} tensors, off by {100 * off[worst].max():.4f} % at most ({worst}), {100 * spread:.4f} % RMS")
    failed = off[worst].max() > 0.005
    random = np.random.default_rng(1)
    matrices = [theirs, ours]
    for number in range(3):
        matrices.append(os.path.join(folder, f"random{number}.gguf"))
        changed = {
            name: data if "counts" in name else data * (1 + spread * random.standard_normal(data.shape))
            for name, data in wanted.items()
        }
        write(theirs, matrices[-1], changed)
    print("\n| mix | divergence, theirs | ours | off % | what chance does, % |\n|---|---:|---:|---:|---:|")
    for mix in mixes:
        before, found, *chance = divergences(gguf, model, mix, matrices, text, folder)
        off = 100 * (found / before - 1)
        chance = ", ".join(f"{100 * (other / before - 1):+.2f}" for other in chance)
        print(f"| {mix} | {before:.6f} | {found:.6f} | {off:+.2f} | {chance} |", flush=True)
        failed |= abs(off) > 2
    sys.exit(1 if failed else 0)


main()
