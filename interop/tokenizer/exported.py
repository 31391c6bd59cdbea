"""Loads exported tokenizers with `tokenizers` and `transformers` from PyPI.

Usage: python interop/tokenizer/exported.py GGUF_BINARY DATA_DIR [MODEL.gguf ...] [--count N]

Exports all vocabularies of DATA_DIR (`vocab`), all checkpoints of its `zoo` after conversion, and the given models. Both libraries
must load the exported files, return the stated ids of added tokens, and encode N generated texts (default: 300) to the ids that
gguf-kit returns for the GGUF. Needs tokenizers, transformers, sentencepiece, protobuf, tiktoken, gguf.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import tokenizers
import transformers
from gguf import GGUFReader

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.tokenizer.compare import Comparison, control_texts, newer_marks, ours
from interop.tokenizer.texts import texts

# Texts that once showed errors.
REGRESSIONS = ["", " ", "a", " a", "a\tb\t\tc\n\nd   e", "<s>a</s>", "\u2581a \u2581 b", "\x00", "\t \x0b <"]


def gguf(binary, *arguments):
    """Runs a command and returns its output."""
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: exit {done.returncode}\n{done.stderr}"
    return done.stdout + done.stderr


def sources(binary, data, models, folder):
    """Yields names and GGUF files; those of checkpoints are removed after use."""
    for path in sorted((data / "vocab").glob("*.gguf")):
        yield path.stem.removeprefix("ggml-vocab-"), path
    for checkpoint in sorted((data / "zoo").iterdir()):
        if list(checkpoint.glob("tokenizer*")) and (checkpoint / "config.json").exists():
            path = folder / "converted.gguf"
            gguf(binary, "convert", checkpoint, "-o", path)
            yield f"zoo {checkpoint.name}", path
            path.unlink()
    for path in models:
        yield path.stem, path


def with_bos_eos(binary, source, strings):
    """Returns the ids of gguf-kit with BOS and EOS where the model adds them."""
    lines = "".join(json.dumps(text) + "\n" for text in strings)
    command = [binary, "tokenize", source, "--stdin", "--jsonl"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(binary, path, exported, strings, comparison, name, explain, explain_bos_eos):
    """Loads an exported tokenizer with both libraries, and compares ids."""
    expected = ours(binary, path, strings)
    file = exported / "tokenizer.json"
    if file.exists():
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
        entries = json.loads(file.read_text())["added_tokens"]
        found = [[tokenizer.token_to_id(entry["content"])] for entry in entries]
        stated = [[entry["id"]] for entry in entries]
        comparison.add(f"{name}, added tokens", [entry["content"] for entry in entries], stated, found)
        found = [e.ids for e in tokenizer.encode_batch(strings, add_special_tokens=False)]
        comparison.add(f"{name}, tokenizers", strings, expected, found, explain)
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    found = [tokenizer.encode(text, add_special_tokens=False) for text in strings]
    comparison.add(f"{name}, transformers", strings, expected, found, explain)
    first = strings[:30]
    found = [tokenizer.encode(text) for text in first]
    comparison.add(f"{name}, with BOS and EOS", first, with_bos_eos(binary, path, first), found, explain_bos_eos)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("data", type=Path)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--count", type=int, default=300)
    args = parser.parse_args()
    comparison = Comparison()
    corpus = (args.data / "tiny-kjv-llama" / "heldout.txt").read_text()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, path in sources(args.binary, args.data, args.models, folder):
            if "tokenizer.ggml.tokens" not in GGUFReader(path).fields:
                continue
            exported = folder / name.replace(" ", "-")
            notes = gguf(args.binary, "export", path, exported)

            def explain(text):
                if "cuts text is not known" in notes:
                    return "the export notes that the pre-tokenizer is unknown"
                return newer_marks(text)

            def explain_bos_eos(text):
                if name == "zoo whisper":
                    return "tokenizer.json has Whisper's prompt tokens, which GGUF cannot express"
                return explain(text)

            strings = REGRESSIONS + list(texts(args.count, corpus, control_texts(path) or ["<s>"]))
            try:
                check(args.binary, path, exported, strings, comparison, name, explain, explain_bos_eos)
            except Exception as error:
                print(f"{name}: {error!r}"[:600])
                comparison.failed += 1
    sys.exit(comparison.failed > 0)


if __name__ == "__main__":
    main()
