"""Compares presets quantized with an importance matrix with the same presets quantized with GPTQ: size and KL divergence.

Usage: python3 interop/quantization/calibration.py GGUF_BINARY DATA [--sizes | --effort | --real] [PRESET ...]
                                                   [--tokens N] [--texts NAME,...] [--held-out NAME=FILE] [--chunks N] [--answers]

DATA is the reference data with the test model, or with --real a folder of GGUF files of trained models. Prints a table of docs/calibration.md: mean KL divergence over 64 chunks of 256 tokens
of heldout.txt of the preset with llama.cpp's importance matrix of calibration.txt, and of the preset calibrated with the same text.
With --sizes `gguf sensitivity` selects the types of the calibrated file for the size of the other; with --effort the file is not
calibrated, but quantized with a longer search and the same importance matrix.

With --real DATA is a GGUF file of a trained model or a folder of them. Each is first made F16, which is then the original: a preset of
its published types would restore it. The importance matrix is that of a good text, pieces of code of Python's standard library and of prose of
its manual. Calibrations use as many tokens of the texts that --texts names: `good`, the same text; `bundled`, that of gguf-kit; `both`,
half of each; `self`, which the model writes. Held out are code of other modules, the rest of the manual, with `self` other text that the model
writes, and the files of --held-out; --chunks chunks of 512 tokens of each. The first table has the mean KL divergence and the top-1 agreement of each file, and the
seconds of the first calibration; with --answers a second one is that of answers.py.
"""

import argparse
import json
import pydoc_data.topics
import random
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.quantization import answers
from interop.quantization.answers import run

PRESETS = """Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4 NVFP4 Q3_K_L Q3_K_M Q3_K_S IQ3_M IQ3_S IQ3_XS
IQ3_XXS Q2_K Q2_K_S IQ2_M IQ2_S IQ2_XS IQ2_XXS TQ2_0 TQ1_0 IQ1_M IQ1_S""".split()


HELD_OUT_CODE = ["tarfile.py", "unittest/mock.py"]
NO_CODE = {"site-packages", "test", "tests", "unittest", "idlelib", "encodings", "pydoc_data"}


def python_texts(folder):
    """Writes texts from Python's standard library and manual, and returns their paths by name.

    The calibration text is a shuffled mixture of short pieces of all modules and of every other topic: a few whole modules calibrate
    worse for other code.
    """
    library = Path(sysconfig.get_path("stdlib"))
    modules = sorted(path.relative_to(library) for path in library.rglob("*.py"))
    modules = [path for path in modules if str(path) not in HELD_OUT_CODE and not NO_CODE & set(path.parts)]
    topics = [text for _, text in sorted(pydoc_data.topics.topics.items())]
    code, prose = pieces("".join((library / path).read_text() for path in modules)), pieces("".join(topics[::2]))
    mixture = code[:: len(code) // len(prose)][: len(prose)] + prose
    random.Random(1).shuffle(mixture)
    texts = {
        "calibration": "".join(mixture),
        "code": "".join((library / file).read_text() for file in HELD_OUT_CODE)[:120_000],
        "prose": "".join(topics[1::2])[:120_000],
    }
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return {name: folder / f"{name}.txt" for name in texts}


def pieces(text):
    """Cuts a text into pieces of about a thousand characters, at ends of lines."""
    found, size = [[]], 0
    for line in text.splitlines(keepends=True):
        found[-1].append(line)
        size += len(line)
        if size >= 1000:
            found.append([])
            size = 0
    return ["".join(lines) for lines in found]


def real_models(options):
    """Prints the tables of trained models."""
    gguf, tokens, texts = options.gguf, options.tokens, options.texts.split(",")
    models = sorted(options.data.glob("*.gguf")) if options.data.is_dir() else [options.data]
    columns = ["imatrix", *texts]
    header = [*columns, *(f"{name} top-1" for name in columns), "seconds"]
    print(f"| model | preset | bytes | held out | {' | '.join(header)} |")
    print(f"|---|---|---:|---|{'---:|' * len(header)}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        held_out = python_texts(scratch)
        good = held_out.pop("calibration")
        held_out |= {name: Path(path) for name, path in (word.split("=", 1) for word in options.held_out)}
        files = {name: scratch / f"{name}.gguf" for name in ("original", *columns)}
        sources = {"good": [good], "bundled": ["bundled"], "both": [good, "bundled"], "self": [scratch / "own.txt"]}
        matrix = scratch / "matrix.gguf"
        for model in models:
            original = files["original"]
            run(gguf, "quantize", "--force", "--allow-requantize", model, original, "F16")
            if "self" in texts:
                run(gguf, "calibration-text", "--force", original, "-o", *sources["self"], "--tokens", tokens)
                held_out["own"] = scratch / "other.txt"
                run(gguf, "calibration-text", "--force", original, "-o", held_out["own"], "--tokens", 20_000, "--seed", 9)
            logits = {}
            for name, text in held_out.items():
                logits[name] = scratch / f"{name}.logits"
                chunks = ("-f", text, "-c", 512, "--chunks", options.chunks)
                run(gguf, "perplexity", "--force", original, *chunks, "--save-logits", logits[name])
            run(gguf, "imatrix", "--force", original, "-f", good, "-o", matrix, "-c", 256, "--chunks", tokens // 256)
            for preset in options.presets or ["Q4_0", "IQ4_XS", "Q3_K_M", "Q2_K"]:
                run(gguf, "quantize", "--force", "--imatrix", matrix, original, files["imatrix"], preset)
                seconds = []
                for text in texts:
                    start = time.time()
                    calibrate = [word for source in sources[text] for word in ("--calibrate", source)]
                    run(gguf, "quantize", "--force", *calibrate, "--calibrate-tokens", tokens, original, files[text], preset)
                    seconds.append(time.time() - start)
                made = [files[name] for name in columns]
                for name in held_out:
                    found = json.loads(run(gguf, "divergence", "--reference-logits", logits[name], *made, "--json"))["models"]
                    losses = " | ".join(f"{one['mean_kld']:.5f} ± {one['mean_kld_error']:.5f}" for one in found)
                    agreements = " | ".join(f"{one['top1_agreement']:.1f} %" for one in found)
                    size = f"{made[0].stat().st_size:,}"
                    print(f"| {model.stem} | {preset} | {size} | {name} | {losses} | {agreements} | {seconds[0]:.0f} |", flush=True)
                if options.answers:
                    answers.print_table(gguf, files)


SIZES = "Q6_K Q5_K_M Q4_K_M IQ4_XS Q3_K_M IQ3_S Q2_K IQ2_S".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("data", type=Path)
    parser.add_argument("presets", nargs="*", metavar="PRESET")
    method = parser.add_mutually_exclusive_group()
    method.add_argument("--sizes", action="store_true")
    method.add_argument("--effort", action="store_true")
    method.add_argument("--real", action="store_true")
    parser.add_argument("--tokens", type=int, default=30_000, help="of each calibration of --real")
    parser.add_argument("--texts", default="good,bundled,self")
    parser.add_argument("--held-out", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--chunks", type=int, default=24, help="of each text held out with --real")
    parser.add_argument("--answers", action="store_true")
    options = parser.parse_intermixed_args()
    if options.real:
        return real_models(options)
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
