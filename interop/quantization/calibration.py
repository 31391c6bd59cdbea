"""Compares presets quantized with an importance matrix with the same presets quantized with GPTQ: size and KL divergence.

Usage: python3 interop/quantization/calibration.py GGUF_BINARY DATA [--sizes | --effort] [PRESET ...]

DATA is the reference data with the test model. Prints a table of docs/calibration.md: mean KL divergence over 64 chunks of 256 tokens
of heldout.txt of the preset with llama.cpp's importance matrix of calibration.txt, and of the preset calibrated with the same text.
With --sizes `gguf sensitivity` selects the types of the calibrated file for the size of the other; with --effort the file is not
calibrated, but quantized with a longer search and the same importance matrix.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PRESETS = """Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4 NVFP4 Q3_K_L Q3_K_M Q3_K_S IQ3_M IQ3_S IQ3_XS
IQ3_XXS Q2_K Q2_K_S IQ2_M IQ2_S IQ2_XS IQ2_XXS TQ2_0 TQ1_0 IQ1_M IQ1_S""".split()


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


SIZES = "Q6_K Q5_K_M Q4_K_M IQ4_XS Q3_K_M IQ3_S Q2_K IQ2_S".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("data", type=Path)
    parser.add_argument("presets", nargs="*", metavar="PRESET")
    method = parser.add_mutually_exclusive_group()
    method.add_argument("--sizes", action="store_true")
    method.add_argument("--effort", action="store_true")
    options = parser.parse_intermixed_args()
    sizes, effort, gguf, data = options.sizes, options.effort, options.gguf, options.data / "tiny-kjv-llama"
    presets = options.presets or (SIZES if sizes else PRESETS)
    print(f"| preset | bytes | imatrix | {'--effort' if effort else 'calibrated'} | ratio | seconds |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        original, official, ours = (Path(scratch) / f"{name}.gguf" for name in ("f16", "official", "ours"))
        run(gguf, "convert", data / "Tiny-KJV-Llama-4M", "-o", original, "--outtype", "f16")
        text, imatrix = data / "calibration.txt", ("--imatrix", data / "imatrix.gguf")
        types = Path(scratch) / "sensitivity.json"
        if sizes:
            run(gguf, "sensitivity", original, "-f", text, "-c", 256, "--chunks", 8, *imatrix, "-o", types)
        evaluation = ("-f", data / "heldout.txt", "-c", 256, "--chunks", 64, "--json")
        for preset in presets:
            run(gguf, "quantize", "--force", *imatrix, original, official, preset)
            types_of_ours = ("--target-size", official.stat().st_size, "--sensitivity", types) if sizes else (preset,)
            start = time.time()
            method = ("--effort", *imatrix) if effort else ("--calibrate", text)
            run(gguf, "quantize", "--force", *method, original, ours, *types_of_ours)
            seconds = time.time() - start
            models = json.loads(run(gguf, "divergence", "-r", original, official, ours, *evaluation))["models"]
            a, b = (model["mean_kld"] for model in models)
            size = ours.stat().st_size
            print(f"| {preset} | {size:,} | {a:.6f} | {b:.6f} | {b / a:.2f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
