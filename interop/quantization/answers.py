"""What a person notices of a quantized model: right choices, equal answers, code that parses.

Usage: python3 interop/quantization/answers.py GGUF_BINARY ORIGINAL FILE [FILE ...] [--tasks N]

Prints a row for the original and for each quantized file:
- the share of the 200 questions of questions.json that are answered right, by the probabilities of their choices,
- how many of the 200 short answers to prompts.json, generated greedily, are equal to those of the original,
- how many of the 60 Python functions of functions.json that the model completes parse.

--tasks takes only the first of each.
"""

import argparse
import ast
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

# Lengths of answers and functions in tokens.
ANSWER, FUNCTION = 16, 128


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def tasks(name, count):
    return json.loads((HERE / name).read_text())[:count]


def multiple_choice(path, count):
    """Writes the questions in llama.cpp's binary format: each with its choices twice, with one and with several right ones."""

    def text(value):
        value = value.encode()
        return struct.pack("<I", len(value)) + value

    questions = []
    for one in tasks("questions.json", count):
        choices = one["choices"]
        labels = [int(place == one["answer"]) for place in range(len(choices))]
        answers = struct.pack("<I", len(choices)) + b"".join(map(text, choices)) + struct.pack(f"<{len(labels)}I", *labels)
        questions.append(text(f"Question: {one['question']} Answer:") + answers + answers)
    offsets, at = [], 0
    for question in questions:
        offsets.append(at)
        at += len(question)
    path.write_bytes(struct.pack(f"<{len(offsets) + 1}I", len(questions), *offsets) + b"".join(questions))


def answer(gguf, model, prompt, *options):
    return json.loads(run(gguf, "generate", model, "-p", prompt, "--temp", 0, "--json", *options))["text"]


def parses(start, completion):
    """Whether a function parses up to the next statement outside of it, or without the last line, which the limit cuts."""
    lines = []
    for line in completion.split("\n"):
        if line[:1].strip() and not line.startswith(("#", ")")):
            break
        lines.append(line)
    else:
        lines = lines[:-1]
    try:
        ast.parse(start + "\n".join(lines) + "\n")
    except SyntaxError:
        return False
    return any(line.strip() for line in lines)


def measure(gguf, model, questions, expected, count):
    """Returns accuracy in percent, the answers, the number of equal ones, and for each function whether it parses."""
    report = json.loads(run(gguf, "perplexity", model, "-f", questions, "--multiple-choice", "--json"))
    accuracy = report["models"][0]["accuracy"]
    answers = [answer(gguf, model, prompt, "-n", ANSWER) for prompt in tasks("prompts.json", count)]
    equal = sum(a == b for a, b in zip(answers, expected or answers))
    functions = tasks("functions.json", count)
    parsed = [parses(start, answer(gguf, model, start, "-n", FUNCTION, "--raw")) for start in functions]
    return accuracy, answers, equal, parsed


def print_table(gguf, models, count=None):
    """Prints a row for each model by name; the first one is the original."""
    print("| file | right choices | equal answers | functions that parse |\n|---|---:|---:|---:|", flush=True)
    expected = None
    with tempfile.TemporaryDirectory() as scratch:
        questions = Path(scratch) / "questions.bin"
        multiple_choice(questions, count)
        for name, model in models.items():
            accuracy, answers, equal, parsed = measure(gguf, model, questions, expected, count)
            expected = expected or answers
            print(f"| {name} | {accuracy:.1f} % | {equal} of {len(answers)} | {sum(parsed)} of {len(parsed)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("original", type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--tasks", type=int, help="of each kind (default: all)")
    options = parser.parse_args()
    print_table(options.gguf, {path.stem: path for path in (options.original, *options.files)}, options.tasks)


if __name__ == "__main__":
    main()
