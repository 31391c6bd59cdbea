"""How fast text becomes tokens: llama.cpp's library, the `tokenizers` package, and ours.

Usage: python tokenize_speed.py MODEL.gguf TEXT.txt [TOKENIZER.json]

    pip install llama-cpp-python    # it holds llama.cpp's library
    pip install tokenizers          # for TOKENIZER.json, the same vocabulary for that package

Encodes the text with the vocabulary on one thread: `llama_tokenize`, `Tokenizer.encode`, and
`cargo bench --bench encode` of this repository, one after the other in each of three rounds, so
that they meet the same machine. Prints the most megabytes per second of each, and how many tokens
came out (user-defined tokens on, control tokens as text). Timed by what each uses of
the processor, so that other programs do not count. llama.cpp gets the first megabyte
only.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import llama_cpp

ROUNDS = 3
# Before the package is loaded: it would use all cores.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
REPOSITORY = Path(__file__).resolve().parents[2]


def official(path, text):
    """Returns a function that encodes, and gives its speed and number of tokens."""
    llama_cpp.llama_log_set(LOG, None)
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(path.encode(), params)
    vocab = llama_cpp.llama_model_get_vocab(model)
    data = text.encode()
    room = (llama_cpp.llama_token * (len(data) + 16))()

    def run():
        start = time.process_time()
        count = llama_cpp.llama_tokenize(vocab, data, len(data), room, len(room), False, False)
        return len(data) / 1e6 / (time.process_time() - start), count

    return run


@llama_cpp.llama_log_callback
def LOG(level, text, user_data):
    """Nothing: the library is talkative."""


def package(path, text):
    """The same for the `tokenizers` package."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)

    def run():
        start = time.process_time()
        count = len(tokenizer.encode(text, add_special_tokens=False).ids)
        return len(text.encode()) / 1e6 / (time.process_time() - start), count

    return run


def ours(path, text_path):
    """The same for the bench of this repository: the first time that it sees the text."""
    command = ["cargo", "bench", "-q", "-p", "gguf-tokenizer", "--bench", "encode", "--"]
    command += [os.path.abspath(path), os.path.abspath(text_path), "--no-special"]

    def run():
        shown = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
        row = re.search(r"^ *text +([\d.]+) +[\d.]+ +(\d+)", shown.stdout, re.MULTILINE)
        return float(row[1]), int(row[2])

    return run


def main():
    model, text_path, *json_path = sys.argv[1:]
    text = Path(text_path).read_text(encoding="utf-8")
    runs = {"ours": ours(model, text_path), "llama_tokenize": official(model, text[:1_000_000])}
    if json_path:
        runs["tokenizers"] = package(json_path[0], text)
    best = dict.fromkeys(runs, (0, 0))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            best[name] = max(best[name], run())
    for name, (speed, count) in best.items():
        print(f"{name:<16} {speed:8.1f} MB/s {count:>10} tokens {best['ours'][0] / speed:8.1f}")


main()
