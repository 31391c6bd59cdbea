"""Compares perplexity and KL divergence of all presets with figures of PyTorch and llama.cpp.

Usage: python3 interop/evaluation/divergence.py GGUF_BINARY DATA FOLDER [PRESET ...]

DATA is `tiny-kjv-llama` of the reference data: a checkpoint, a text, `exact.json` (computed by torch with all matmuls in F32) and
`reference.json` (computed by llama.cpp, which rounds activations to 8 bits). Quantizes each preset in FOLDER, and compares

- `exact` with exact.json: perplexity within 0.01 %, divergences within 1 % (1e-6 where they are below
  1e-4), top-1 agreement within 1 %;
- `fast` with reference.json: perplexity within 0.2 %.
"""

import argparse
import json
import os
import subprocess
import sys

EVALUATION = ["--ctx-size", "256", "--chunks", "64", "--json"]


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def figures(gguf, model, file, text, precision):
    words = ["divergence", "--reference", model, file, "-f", text, "--precision", precision]
    return json.loads(run(gguf, *words, *EVALUATION))["models"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gguf", "data", "folder"):
        parser.add_argument(name)
    parser.add_argument("presets", nargs="*", metavar="PRESET")
    options = parser.parse_args()
    gguf, data, folder = options.gguf, options.data, options.folder
    os.makedirs(folder, exist_ok=True)
    model, text = os.path.join(folder, "f16.gguf"), os.path.join(data, "heldout.txt")
    run(gguf, "convert", os.path.join(data, "Tiny-KJV-Llama-4M"), "-o", model, "--outtype", "f16", "--force")
    with open(os.path.join(data, "exact.json")) as file:
        exact = json.load(file)
    with open(os.path.join(data, "reference.json")) as file:
        reference = json.load(file)
    presets = options.presets or [preset for preset in exact if preset != "f16"]
    failed = 0
    print(f"{'preset':<18}{'perplexity':>12}{'off %':>9}{'divergence':>12}{'off %':>9}{'fast':>12}{'off %':>9}")
    for preset in presets:
        name, _, imatrix = preset.partition("+")
        quantized = os.path.join(folder, "preset.gguf")
        more = ["--imatrix", os.path.join(data, "imatrix.gguf")] if imatrix else []
        run(gguf, "quantize", model, quantized, name, "--force", *more)
        found, expected = figures(gguf, model, quantized, text, "exact"), exact[preset]
        failures = []
        if abs(found["ppl_q"] - expected["ppl"]) > 1e-4 * expected["ppl"]:
            failures.append("ppl")
        for key in ("mean_kld", "median_kld", "max_kld"):
            if key in expected and abs(found[key] - expected[key]) > (
                1e-6 if expected[key] < 1e-4 else 0.01 * expected[key]
            ):
                failures.append(f"{key} {found[key]:.3g}; expected {expected[key]:.3g}")
        if "same_top" in expected and abs(found["top1_agreement"] - expected["same_top"]) > 1:
            failures.append("same_top")
        fast = figures(gguf, model, quantized, text, "fast")
        theirs = reference.get(preset, {}).get("ppl_q", reference.get(preset, {}).get("ppl"))
        off_fast = 100 * (fast["ppl_q"] / theirs - 1) if theirs else float("nan")
        if theirs and abs(off_fast) > 0.2:
            failures.append("fast")
        off = 100 * (found["ppl_q"] / expected["ppl"] - 1)
        kld = found["mean_kld"]
        off_kld = 100 * (kld / expected["mean_kld"] - 1) if expected.get("mean_kld") else 0.0
        print(
            f"{preset:<18}{found['ppl_q']:>12.4f}{off:>9.4f}{kld:>12.6f}{off_kld:>9.3f}"
            f"{fast['ppl_q']:>12.4f}{off_fast:>9.3f}  {', '.join(failures)}",
            flush=True,
        )
        failed += bool(failures)
    print(f"{len(presets)} presets, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
