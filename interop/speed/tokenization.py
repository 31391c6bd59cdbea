"""Measures tokenization beside llama.cpp's library and the `tokenizers` package.

Usage: python interop/speed/tokenization.py MODEL.gguf TEXT.txt [TOKENIZER.json]

Encodes the text with the vocabulary on one thread with `llama_tokenize`, `Tokenizer.encode` (with TOKENIZER.json, the same vocabulary)
and the benchmark `encode` of crates/tokenizer, alternately for three rounds. Prints the maximum of megabytes per CPU second, and the
number of tokens (user-defined tokens are parsed, control tokens are text). llama.cpp encodes the first megabyte only. Needs
llama-cpp-python and tokenizers.
"""

import argparse
import os
import re
import subprocess
import time
from pathlib import Path

import llama_cpp

ROUNDS = 3
# Set before the package is loaded, which otherwise uses all cores.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
REPOSITORY = Path(__file__).resolve().parents[2]


def official(path, text):
    """Returns a function that encodes with llama.cpp, and returns speed and number of tokens."""
    llama_cpp.llama_log_set(LOG, None)
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(path.encode(), params)
    vocab = llama_cpp.llama_model_get_vocab(model)
    data = text.encode()
    buffer = (llama_cpp.llama_token * (len(data) + 16))()

    def run():
        start = time.process_time()
        count = llama_cpp.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, False)
        return len(data) / 1e6 / (time.process_time() - start), count

    return run


@llama_cpp.llama_log_callback
def LOG(level, text, user_data):
    """Discards messages of the library."""


def package(path, text):
    """Returns such a function for the `tokenizers` package."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)

    def run():
        start = time.process_time()
        count = len(tokenizer.encode(text, add_special_tokens=False).ids)
        return len(text.encode()) / 1e6 / (time.process_time() - start), count

    return run


def ours(path, text_path):
    """Returns such a function for the benchmark of this repository: its first pass over the text."""
    command = ["cargo", "bench", "-q", "-p", "gguf-tokenizer", "--bench", "encode", "--"]
    command += [os.path.abspath(path), os.path.abspath(text_path), "--no-special"]

    def run():
        shown = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
        row = re.search(r"^ *text +([\d.]+) +[\d.]+ +(\d+)", shown.stdout, re.MULTILINE)
        return float(row[1]), int(row[2])

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("tokenizer", nargs="?")
    options = parser.parse_args()
    model, text_path = options.model, options.text
    text = Path(text_path).read_text(encoding="utf-8")
    runs = {"ours": ours(model, text_path), "llama_tokenize": official(model, text[:1_000_000])}
    if options.tokenizer:
        runs["tokenizers"] = package(options.tokenizer, text)
    best = dict.fromkeys(runs, (0, 0))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            best[name] = max(best[name], run())
    for name, (speed, count) in best.items():
        print(f"{name:<16} {speed:8.1f} MB/s {count:>10} tokens {best['ours'][0] / speed:8.1f}")


if __name__ == "__main__":
    main()
