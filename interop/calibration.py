"""Official mixes with an importance matrix beside the same mixes calibrated: sizes, and divergence from the original.

usage: calibration.py GGUF DATA [MIX ...]

GGUF is our binary, DATA the reference data with the test model. Prints the table of docs/calibration.md: mean divergence over
64 windows of 256 tokens of heldout.txt, in exact arithmetic, of the mix as llama.cpp makes it with its importance matrix of
calibration.txt, and of ours, calibrated with the same text.
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


def main():
    gguf, data = sys.argv[1], Path(sys.argv[2]) / "tiny-kjv-llama"
    mixes = sys.argv[3:] or MIXES
    print("| mix | bytes | official, with imatrix | calibrated | ratio | seconds |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        original, official, ours = (Path(scratch) / f"{name}.gguf" for name in ("f16", "official", "ours"))
        run(gguf, "convert", data / "Tiny-KJV-Llama-4M", "-o", original, "--outtype", "f16")
        text = ("-f", data / "heldout.txt", "-c", 256, "--chunks", 64, "--json")
        for mix in mixes:
            run(gguf, "quantize", "--force", "--imatrix", data / "imatrix.gguf", original, official, mix)
            began = time.time()
            run(gguf, "quantize", "--force", "--calibrate", data / "calibration.txt", original, ours, mix)
            seconds = time.time() - began
            models = json.loads(run(gguf, "divergence", "-r", original, official, ours, *text))["models"]
            a, b = (model["mean_kld"] for model in models)
            size = ours.stat().st_size
            print(f"| {mix} | {size:,} | {a:.6f} | {b:.6f} | {b / a:.2f} | {seconds:.0f} |", flush=True)


main()
