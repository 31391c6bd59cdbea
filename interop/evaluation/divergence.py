"""What `gguf divergence` says of every mix, beside figures that others computed.

Usage: python evaluation.py GGUF_BINARY DATA FOLDER [MIX ...]

DATA is `tiny-kjv-llama` of the reference data: a checkpoint, a text, `exact.json` (every product in F32,
computed by torch) and `reference.json` (by llama.cpp, which rounds activations to 8 bits). Makes each
mix in FOLDER with `gguf quantize`, and compares

- `exact` with exact.json: perplexity within 0.01 %, divergences within 1 % (1e-6 where they are below
  1e-4), the share of equal top tokens within 1 %;
- `fast` with reference.json: perplexity within 0.2 %.
"""

import json
import os
import subprocess
import sys

HOW = ["--ctx-size", "256", "--chunks", "64", "--json"]


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def figures(gguf, model, file, text, arithmetic):
    words = ["divergence", "--reference", model, file, "-f", text, "--precision", arithmetic]
    return json.loads(run(gguf, *words, *HOW))["models"][0]


def main():
    gguf, data, folder = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    model, text = os.path.join(folder, "f16.gguf"), os.path.join(data, "heldout.txt")
    run(gguf, "convert", os.path.join(data, "Tiny-KJV-Llama-4M"), "-o", model, "--outtype", "f16", "--force")
    with open(os.path.join(data, "exact.json")) as file:
        exact = json.load(file)
    with open(os.path.join(data, "reference.json")) as file:
        reference = json.load(file)
    mixes = sys.argv[4:] or [mix for mix in exact if mix != "f16"]
    failed = 0
    print(f"{'mix':<18}{'perplexity':>12}{'off %':>9}{'divergence':>12}{'off %':>9}{'fast':>12}{'off %':>9}")
    for mix in mixes:
        name, _, imatrix = mix.partition("+")
        made = os.path.join(folder, "mix.gguf")
        more = ["--imatrix", os.path.join(data, "imatrix.gguf")] if imatrix else []
        run(gguf, "quantize", model, made, name, "--force", *more)
        found, wanted = figures(gguf, model, made, text, "exact"), exact[mix]
        faults = []
        if abs(found["ppl_q"] - wanted["ppl"]) > 1e-4 * wanted["ppl"]:
            faults.append("ppl")
        for key in ("mean_kld", "median_kld", "max_kld"):
            if key in wanted and abs(found[key] - wanted[key]) > (
                1e-6 if wanted[key] < 1e-4 else 0.01 * wanted[key]
            ):
                faults.append(f"{key} {found[key]:.3g} not {wanted[key]:.3g}")
        if "same_top" in wanted and abs(found["top1_agreement"] - wanted["same_top"]) > 1:
            faults.append("same_top")
        fast = figures(gguf, model, made, text, "fast")
        theirs = reference.get(mix, {}).get("ppl_q", reference.get(mix, {}).get("ppl"))
        off_fast = 100 * (fast["ppl_q"] / theirs - 1) if theirs else float("nan")
        if theirs and abs(off_fast) > 0.2:
            faults.append("fast")
        off = 100 * (found["ppl_q"] / wanted["ppl"] - 1)
        kld = found["mean_kld"]
        off_kld = 100 * (kld / wanted["mean_kld"] - 1) if wanted.get("mean_kld") else 0.0
        print(
            f"{mix:<18}{found['ppl_q']:>12.4f}{off:>9.4f}{kld:>12.6f}{off_kld:>9.3f}"
            f"{fast['ppl_q']:>12.4f}{off_fast:>9.3f}  {', '.join(faults)}",
            flush=True,
        )
        failed += bool(faults)
    print(f"{len(mixes)} mixes, {failed} off")
    sys.exit(1 if failed else 0)


main()
