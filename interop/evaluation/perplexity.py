"""Compares perplexities and benchmarks of trained models with `llama-perplexity`.

Usage: python3 interop/evaluation/perplexity.py GGUF_BINARY LLAMA_PERPLEXITY MODELS TEXT FOLDER [--chunks N] [--logits]

MODELS has smollm2-135m-instruct.Q4_1.gguf and gemma-3-270m.Q4_K_M.gguf, TEXT is `heldout.txt` of `tiny-kjv-llama` of the reference
data. Compares

- HellaSwag, WinoGrande and multiple-choice tasks, generated from the text in FOLDER: the accuracy of SmolLM2 in F16 must be equal
  (with fewer bits llama.cpp rounds activations to 8 bits, which changes close results), and for WinoGrande, whose scores llama.cpp
  prints, all scores within 0.01;
- with --logits the perplexity of both models on chunks of 256 tokens (32 unless stated): the logits that llama.cpp writes to a file
  (400 MB, 2 GB for Gemma) are the reference of `gguf divergence`. Within 0.2 %, or twice the standard error of the ratio, because
  llama.cpp rounds activations.
"""

import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys

MODELS = ["smollm2-135m-instruct.Q4_1.gguf", "gemma-3-270m.Q4_K_M.gguf"]
# WinoGrande tasks: sentence, two options, and the right one.
WINOGRANDE = [
    ("The trophy did not fit into the suitcase because the _ was much too large to go in.", "trophy", "suitcase", 1),
    ("The trophy did not fit into the suitcase because the _ was much too small to hold it.", "trophy", "suitcase", 2),
    ("Anna thanked Mary for all the help that _ had given her in the last week.", "Anna", "Mary", 2),
    ("Anna thanked Mary for all the help that _ had received from her in the last week.", "Anna", "Mary", 1),
    ("Peter poured water from the bottle into the cup until the _ was empty and dry.", "bottle", "cup", 1),
    ("Peter poured water from the bottle into the cup until the _ was full to the brim.", "bottle", "cup", 2),
    ("The man could not lift his son because _ was so weak after the long illness.", "the man", "his son", 1),
    ("The man could not lift his son because _ was so heavy for a boy of his age.", "the man", "his son", 2),
    ("The sculpture fell off the shelf because the _ was not level with the floor.", "sculpture", "shelf", 2),
    ("Tom told Ben many lies about himself, which _ included in his next book.", "Tom", "Ben", 2),
    ("The large ball crashed right through the table because the _ was made of steel.", "ball", "table", 1),
    ("The large ball crashed right through the table because the _ was made of paper.", "ball", "table", 2),
]
failed = 0


def check(what, fine):
    global failed
    failed += not fine
    print(f"{'ok     ' if fine else 'DIFFERS'} {what}", flush=True)


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}:\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def ours(args, *words):
    words = [args.gguf, *words, "--json"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["models"][0]


def completion_tasks(text, count=40):
    """Yields the beginning of a sentence, four endings, and the number of the right one."""
    verses = [verse for verse in re.split(r"(?<=[.?]) ", text) if 12 <= len(verse.split()) <= 30]
    rng = random.Random(1)
    for verse in rng.sample(verses, count):
        words = verse.split()
        begin, end = " ".join(words[:8]), " ".join(words[8:])
        others = [" ".join(other.split()[8:]) for other in rng.sample(verses, 4) if other != verse][:3]
        right = rng.randrange(4)
        yield begin, [*others[:right], end, *others[right:]], right


def write_tasks(args, paths):
    with open(args.text) as file:
        completions = list(completion_tasks(file.read()))
    with open(paths["hellaswag"], "w") as file:
        for begin, ends, right in completions:
            file.write("\n".join([begin, str(right), *ends]) + "\n")
    with open(paths["winogrande"], "w") as file:
        for number, (sentence, one, two, right) in enumerate(WINOGRANDE):
            file.write(f'{number},"{sentence}",{one},{two},{right}\n')
        # llama.cpp skips a task without two newlines after it.
        file.write("\n")

    def string(text):
        return struct.pack("<I", len(text.encode())) + text.encode()

    tasks = []
    for begin, ends, right in completions:
        labels = [int(number == right) for number in range(4)]
        tasks.append(string(begin) + struct.pack("<I", 4) + b"".join(map(string, ends)))
        tasks[-1] += struct.pack("<4I", *labels) + struct.pack("<I", 0)
    offsets = [4 + 4 * len(tasks)]
    for task in tasks[:-1]:
        offsets.append(offsets[-1] + len(task))
    with open(paths["multiple-choice"], "wb") as file:
        file.write(struct.pack(f"<{1 + len(offsets)}I", len(offsets), *offsets) + b"".join(tasks))


def benchmarks(args):
    names = ["hellaswag", "winogrande", "multiple-choice"]
    paths = {name: os.path.join(args.folder, f"tasks.{name}") for name in names}
    write_tasks(args, paths)
    model = os.path.join(args.folder, "f16.gguf")
    if not os.path.exists(model):
        run(args.gguf, "quantize", os.path.join(args.models, MODELS[0]), model, "F16", "--allow-requantize")
    for name, path in paths.items():
        for count in (None, 7):
            limit = [] if count is None else [f"--{name}-tasks", count]
            found = ours(args, "perplexity", model, "-f", path, f"--{name}", *limit)
            output = run(args.llama_perplexity, "-m", model, "-f", path, f"--{name}", *limit, "-t", 1)
            lines = re.findall(r"^(?:[\d.]+ \w )?(\d+)\t([\d.]+)%?(.*)$", output, re.MULTILINE)
            tasks, theirs = int(lines[-1][0]), float(lines[-1][1])
            what = f"{name}: {found['accuracy']:.4f} % of {found['tasks']}, llama.cpp {theirs:.4f} % of {tasks}"
            check(what, (tasks, round(theirs, 3)) == (found["tasks"], round(found["accuracy"], 3)))
            if name == "winogrande":
                scores = [list(map(float, rest.split()[:2])) for _, _, rest in lines]
                greatest = max(
                    abs(a - b)
                    for task, scores in zip(found["results"], scores, strict=True)
                    for a, b in zip(task["scores"], scores, strict=True)
                )
                check(f"{name}: greatest difference of scores {greatest:.4f}", greatest < 0.01)


def perplexities(args):
    base = os.path.join(args.folder, "logits")
    print("\n| model | llama.cpp | ours, fast | ratio | ours, exact | ratio |\n|---|---:|---:|---:|---:|---:|")
    for name in MODELS:
        model = os.path.join(args.models, name)
        flags = ["-c", 256, "-b", 256, "--chunks", args.chunks, "-t", 2]
        output = run(args.llama_perplexity, "-m", model, "-f", args.text, *flags, "--kl-divergence-base", base)
        theirs = float(re.search(r"Final estimate: PPL = ([\d.]+)", output)[1])
        row, is_near = f"| {name} | {theirs:.4f}", True
        for precision in ("fast", "exact"):
            found = ours(args, "divergence", model, "--reference-logits", base, "--precision", precision)
            # The file has logits in 16 bits; llama.cpp prints the perplexity without rounding.
            ratio, error = found["ppl_q"] / theirs, found["ppl_ratio_error"]
            row += f" | {found['ppl_q']:.4f} | {ratio:.4f} ± {error:.4f}"
            is_near &= abs(ratio - 1) < max(0.002, 2 * error)
        os.remove(base)
        print(row + " |")
        check(f"perplexity of {name}", is_near)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("gguf", "llama_perplexity", "models", "text", "folder"):
        parser.add_argument(name)
    parser.add_argument("--chunks", type=int, default=32)
    parser.add_argument("--logits", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    benchmarks(args)
    if args.logits:
        perplexities(args)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
