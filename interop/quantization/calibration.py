"""Official mixes with an importance matrix beside the same mixes calibrated: sizes, and divergence from the original.

usage: calibration.py GGUF DATA [--sizes | --effort] [MIX ...]

GGUF is our binary, DATA the reference data with the test model. Prints a table of docs/calibration.md: mean divergence over
64 windows of 256 tokens of heldout.txt, in exact arithmetic, of the mix as llama.cpp makes it with its importance matrix of
calibration.txt, and of ours, calibrated with the same text. With --sizes the types of ours are chosen by `gguf sensitivity`
for the size of the official file; with --effort ours reads no text, and searches longer, by the same importance matrix.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MIXES = """Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4 NVFP4 Q3_K_L Q3_K_M Q3_K_S IQ3_M IQ3_S IQ3_XS
IQ3_XXS Q2_K Q2_K_S IQ2_M IQ2_S IQ2_XS IQ2_XXS TQ2_0 TQ1_0 IQ1_M IQ1_S""".split()


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


SIZES = "Q6_K Q5_K_M Q4_K_M IQ4_XS Q3_K_M IQ3_S Q2_K IQ2_S".split()


def main():
    sizes, effort = "--sizes" in sys.argv, "--effort" in sys.argv
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    gguf, data = words[0], Path(words[1]) / "tiny-kjv-llama"
    mixes = words[2:] or (SIZES if sizes else MIXES)
    print(f"| mix | bytes | official, with imatrix | {'--effort' if effort else 'calibrated'} | ratio | seconds |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        original, official, ours = (Path(scratch) / f"{name}.gguf" for name in ("f16", "official", "ours"))
        run(gguf, "convert", data / "Tiny-KJV-Llama-4M", "-o", original, "--outtype", "f16")
        text, imatrix = data / "calibration.txt", ("--imatrix", data / "imatrix.gguf")
        types = Path(scratch) / "sensitivity.json"
        if sizes:
            run(gguf, "sensitivity", original, "-f", text, "-c", 256, "--chunks", 8, *imatrix, "-o", types)
        judge = ("-f", data / "heldout.txt", "-c", 256, "--chunks", 64, "--json")
        for mix in mixes:
            run(gguf, "quantize", "--force", *imatrix, original, official, mix)
            how = ("--target-size", official.stat().st_size, "--sensitivity", types) if sizes else (mix,)
            began = time.time()
            by = ("--effort", *imatrix) if effort else ("--calibrate", text)
            run(gguf, "quantize", "--force", *by, original, ours, *how)
            seconds = time.time() - began
            models = json.loads(run(gguf, "divergence", "-r", original, official, ours, *judge))["models"]
            a, b = (model["mean_kld"] for model in models)
            size = ours.stat().st_size
            print(f"| {mix} | {size:,} | {a:.6f} | {b:.6f} | {b / a:.2f} | {seconds:.0f} |", flush=True)


main()
