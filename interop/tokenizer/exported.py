"""Exported tokenizers beside the libraries that they are for: `tokenizers` and `transformers` from PyPI.

Usage: python exported_tokenizers.py GGUF_BINARY DATA_DIR [MODEL.gguf ...] [--count N]

Takes every vocabulary of DATA_DIR (`vocab`), every checkpoint of its `zoo` as converted here, and
the models that are named. Each is exported. Both libraries must load what was written, give added
tokens the ids that it states, and make the ids of N generated texts (300 if not given) that we make
of the GGUF. Needs: tokenizers, transformers, sentencepiece, protobuf, tiktoken, gguf.
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

# Texts on which mistakes showed that are mended.
ALWAYS = ["", " ", "a", " a", "a\tb\t\tc\n\nd   e", "<s>a</s>", "\u2581a \u2581 b", "\x00", "\t \x0b <"]


def gguf(binary, *arguments):
    """What a command prints."""
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: exit {done.returncode}\n{done.stderr}"
    return done.stdout + done.stderr


def sources(binary, data, models, folder):
    """Names and GGUF files; those of checkpoints exist one at a time."""
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


def with_ends(binary, source, strings):
    """Our ids with the tokens that the model wants at the ends of a text."""
    lines = "".join(json.dumps(text) + "\n" for text in strings)
    command = [binary, "tokenize", source, "--stdin", "--jsonl"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(binary, path, exported, strings, comparison, name, explain, explain_ends):
    """Loads what was exported with both libraries, and compares ids."""
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
    some = strings[:30]
    found = [tokenizer.encode(text) for text in some]
    comparison.add(f"{name}, with ends", some, with_ends(binary, path, some), found, explain_ends)


def main():
    parser = argparse.ArgumentParser()
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
                    return "the export notes that it does not know how the model cuts text"
                return newer_marks(text)

            def explain_ends(text):
                if name == "zoo whisper":
                    return "the file tells what Whisper puts before a text, the GGUF cannot"
                return explain(text)

            strings = ALWAYS + list(texts(args.count, corpus, control_texts(path) or ["<s>"]))
            try:
                check(args.binary, path, exported, strings, comparison, name, explain, explain_ends)
            except Exception as error:
                # The libraries raise what they like.
                print(f"{name}: {error!r}"[:600])
                comparison.failed += 1
    sys.exit(comparison.failed > 0)


if __name__ == "__main__":
    main()
