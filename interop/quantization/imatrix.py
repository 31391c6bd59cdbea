"""Compares importance matrices of `gguf imatrix` with those of llama.cpp.

Usage: python interop/quantization/imatrix.py GGUF_BINARY DATA FOLDER [PRESET ...]

DATA is `tiny-kjv-llama` of the reference data: a checkpoint, a calibration text, the matrix that `llama-imatrix` computed from it
(chunks of 256 tokens), a held-out text. Computes a matrix in FOLDER and compares

- all sums: within 0.5 %;
- the KL divergence of each preset quantized with both matrices: within 2 %. Small differences of the weights sometimes change the
  result of an encoder, and with it predictions. The script therefore also prints the divergences with llama.cpp's matrix under
  random noise of the size of the differences (three times, in percent).

Needs `gguf` and `numpy` from PyPI.
"""

import argparse
import json
import os
import subprocess
import sys

import gguf as format
import numpy as np

EVALUATION = ["--ctx-size", "256", "--chunks", "64", "--json"]
PRESETS = [
    "Q2_K", "Q2_K_S", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "Q5_0", "Q5_1",
    "Q5_K_S", "Q5_K_M", "Q6_K", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS",
    "IQ3_S", "IQ3_M", "IQ4_NL", "IQ4_XS",
]


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def matrix(path):
    return {tensor.name: np.array(tensor.data) for tensor in format.GGUFReader(path).tensors}


def write(source, path, tensors):
    """Writes a copy of the matrix with other values."""
    reader = format.GGUFReader(source)
    data = bytearray(reader.data)
    for tensor in reader.tensors:
        made = np.ascontiguousarray(tensors[tensor.name], np.float32).tobytes()
        data[tensor.data_offset : tensor.data_offset + len(made)] = made
    with open(path, "wb") as file:
        file.write(data)


def divergences(gguf, model, preset, matrices, text, folder):
    """Returns the mean KL divergence of a preset with each matrix."""
    files = []
    for number, matrix in enumerate(matrices):
        files.append(os.path.join(folder, f"preset{number}.gguf"))
        run(gguf, "quantize", model, files[-1], preset, "--force", "--imatrix", matrix)
    found = run(gguf, "divergence", "--reference", model, *files, "-f", text, *EVALUATION)
    return [model["mean_kld"] for model in json.loads(found)["models"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gguf", "data", "folder"):
        parser.add_argument(name)
    parser.add_argument("presets", nargs="*", metavar="PRESET", default=PRESETS)
    options = parser.parse_args()
    gguf, data, folder = options.gguf, options.data, options.folder
    os.makedirs(folder, exist_ok=True)
    model, text = os.path.join(folder, "f16.gguf"), os.path.join(data, "heldout.txt")
    run(gguf, "convert", os.path.join(data, "Tiny-KJV-Llama-4M"), "-o", model, "--outtype", "f16", "--force")
    ours, theirs = os.path.join(folder, "imatrix.gguf"), os.path.join(data, "imatrix.gguf")
    calibration = os.path.join(data, "calibration.txt")
    run(gguf, "imatrix", model, "-f", calibration, "-c", "256", "-o", ours, "--force")
    found, expected = matrix(ours), matrix(theirs)
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    off = {name: np.abs(found[name] / expected[name] - 1) for name in expected}
    worst = max(off, key=lambda name: off[name].max())
    spread = np.sqrt(np.mean(np.concatenate([o.ravel() for name, o in off.items() if "counts" not in name]) ** 2))
    print(f"{len(expected)} tensors, difference {100 * off[worst].max():.4f} % at most ({worst}), {100 * spread:.4f} % RMS")
    failed = off[worst].max() > 0.005
    random = np.random.default_rng(1)
    matrices = [theirs, ours]
    for number in range(3):
        matrices.append(os.path.join(folder, f"random{number}.gguf"))
        changed = {
            name: data if "counts" in name else data * (1 + spread * random.standard_normal(data.shape))
            for name, data in expected.items()
        }
        write(theirs, matrices[-1], changed)
    print("\n| preset | KL divergence, llama.cpp | ours | difference % | random noise % |\n|---|---:|---:|---:|---:|")
    for preset in options.presets:
        expected, found, *noise = divergences(gguf, model, preset, matrices, text, folder)
        off = 100 * (found / expected - 1)
        noise = ", ".join(f"{100 * (other / expected - 1):+.2f}" for other in noise)
        print(f"| {preset} | {expected:.6f} | {found:.6f} | {off:+.2f} | {noise} |", flush=True)
        failed |= abs(off) > 2
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
