"""Compares ids of random texts with the package `tokenizers`, for tokenizer files and their variations.

Usage: python interop/tokenizer/random_texts.py GGUF_BINARY ZOO [--count N] [--seed N] [TOKENIZER_JSON...]

Special tokens stand at random places of the texts. For each tokenizer of the checkpoints in ZOO, for variations of some of them, and for each
TOKENIZER_JSON: `gguf tokenize tokenizer.json` gives the ids of the package, and `gguf tokenize` of a converted file gives them too, or the
conversion has noted that some texts get other ids.
"""

import argparse
import copy
import json
import random
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import tokenizers

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.tokenizer.texts import piece

WORDS = "the of and In beginning God created heaven earth Hello world it's naïve Straße 東京 été x".split()
# Note of a conversion about texts with other ids.
NOTE = "get other ids than in tokenizer.json"
CLASSES = {"WordPiece": "BertModel", "Unigram": "XLMRobertaModel", "BPE": "LlamaForCausalLM"}
SIZES = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "layer_norm_eps": 1e-5, "type_vocab_size": 2, "hidden_act": "silu",
}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = {"type": "Prepend", "prepend": "\u2581"}


def texts(rng, count, special):
    """Yields texts of words and hard pieces, with special tokens and spaces in random places."""
    for _ in range(count):
        parts = []
        for _ in range(rng.randrange(1, 8)):
            parts.append(rng.choice(special) if rng.random() < 0.4 else piece(rng, WORDS, special))
            if rng.random() < 0.5:
                parts.append(rng.choice([" ", " ", "  ", "\n", "\t ", " \n"]))
        # A version of Unicode that assigns a character may give it another normal form.
        yield "".join(c for c in "".join(parts) if unicodedata.category(c) != "Cn")


def sequence(*parts):
    return {"type": "Sequence", "normalizers": list(parts)}


def variations(name, tokenizer):
    """Yields names and changed copies of a `tokenizer.json`."""
    def changed(what, **parts):
        other = copy.deepcopy(tokenizer)
        other.update(parts)
        return f"{name} {what}", other

    model = tokenizer["model"]
    if name == "llama":
        for scheme in ["always", "first", "never"]:
            for split in [False, True]:
                metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}
                yield changed(f"metaspace {scheme} {split}", normalizer=None, pre_tokenizer=metaspace)
        yield changed("without prefix", normalizer=sequence(REPLACE))
        yield changed("lower case", normalizer=sequence({"type": "Lowercase"}, PREPEND, REPLACE))
        yield changed("without post-processor", post_processor=None)
    if name == "gpt2":
        for kind in ["Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Nmt"]:
            yield changed(kind, normalizer={"type": kind})
        yield changed("Strip", normalizer={"type": "Strip", "strip_left": True, "strip_right": True})
        yield changed("Prepend", normalizer={"type": "Prepend", "prepend": "x"})
        yield changed("Replace", normalizer={"type": "Replace", "pattern": {"Regex": "\\d"}, "content": "0"})
        yield changed("Sequence", normalizer=sequence({"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}))
        pre = {**tokenizer["pre_tokenizer"], "add_prefix_space": True}
        yield changed("add_prefix_space", pre_tokenizer=pre)
        bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
        yield changed("BertNormalizer", normalizer=bert)
        yield changed("ignore_merges", model={**model, "ignore_merges": True})
    if name == "bert":
        usual = tokenizer["normalizer"]
        for key, values in {"clean_text": [False], "handle_chinese_chars": [False], "strip_accents": [True, False], "lowercase": [False]}.items():
            for value in values:
                yield changed(f"{key} {value}", normalizer={**usual, key: value})
        yield changed("strip_accents only", normalizer={**usual, "lowercase": False, "strip_accents": True})
        yield changed("short words", model={**model, "max_input_chars_per_word": 5})
    if name in ["llama", "gpt2", "bert", "qwen2"]:
        for flag in ["lstrip", "rstrip", "single_word", "normalized"]:
            for special in [False, True]:
                other = copy.deepcopy(tokenizer)
                flags = dict.fromkeys(["lstrip", "rstrip", "single_word", "normalized"], False)
                token = {"id": size(tokenizer), "content": "<Tool>", **flags, flag: True, "special": special}
                other["added_tokens"].append(token)
                yield f"{name} {flag} {'special' if special else 'plain'}", other
        other = copy.deepcopy(tokenizer)
        for token in other["added_tokens"]:
            token["normalized"] = True
        yield f"{name} normalized", other


def size(tokenizer):
    """Returns the number of ids."""
    vocab = tokenizer["model"]["vocab"]
    ids = range(len(vocab)) if isinstance(vocab, list) else vocab.values()
    return 1 + max([*ids, *(token["id"] for token in tokenizer["added_tokens"])])


def ids(binary, source, strings):
    """Returns the ids of gguf-kit."""
    lines = "".join(json.dumps(text) + "\n" for text in strings)
    command = [binary, "tokenize", str(source), "--stdin", "--jsonl", "--no-bos"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def configured(tokenizer, folder):
    """Writes a configuration for a tokenizer without its checkpoint."""
    rows = size(tokenizer)
    config = {"architectures": [CLASSES[tokenizer["model"].get("type", "BPE")]], "vocab_size": rows, **SIZES}
    (folder / "config.json").write_text(json.dumps(config))


def compare(binary, name, source, folder, strings):
    """Returns whether a tokenizer and its conversion are right, and prints numbers."""
    reference = tokenizers.Tokenizer.from_file(str(source))
    reference.no_truncation()
    reference.no_padding()
    expected = [e.ids for e in reference.encode_batch(strings, add_special_tokens=False)]
    wrong = [(t, e, g) for t, e, g in zip(strings, expected, ids(binary, source, strings)) if e != g]
    output = folder / "converted.gguf"
    command = [binary, "convert", str(folder), "--vocab-only", "-o", str(output), "--force"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: {len(wrong)} of {len(strings)} texts differ; not converted: {done.stderr.splitlines()[0]}")
        return not wrong
    converted = [(t, e, g) for t, e, g in zip(strings, expected, ids(binary, output, strings)) if e != g]
    notes = [line for line in done.stderr.splitlines() if NOTE in line]
    print(f"{name}: {len(wrong)} of {len(strings)} texts differ, {len(converted)} in the converted file; {len(notes)} notes")
    for text, e, g in wrong[:2] + (converted[:2] if not notes else []):
        at = next((i for i, (a, b) in enumerate(zip(e, g)) if a != b), min(len(e), len(g)))
        print(f"  {json.dumps(text)[:300]}\n    id {at}: expected {e[at:at + 12]}, got {g[at:at + 12]}")
    if notes and not converted:
        print(f"  noted, but no text differs: {notes[0]}")
    sys.stdout.flush()
    return not wrong and (not converted or bool(notes))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("zoo", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="names that contain this")
    args = parser.parse_args()
    cases = []
    for source in sorted(args.zoo.glob("*/tokenizer.json")):
        name, tokenizer = source.parent.name, json.loads(source.read_text())
        cases.append((name, tokenizer, source.parent))
        cases.extend((what, other, None) for what, other in variations(name, tokenizer))
    cases.extend((str(file), json.loads(file.read_text()), None) for file in args.files)
    failed = []
    for name, tokenizer, checkpoint in cases:
        if args.only and args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            if checkpoint:
                for file in checkpoint.iterdir():
                    if file.suffix in [".json", ".txt", ".model"] and "index" not in file.name:
                        shutil.copy(file, folder)
            else:
                configured(tokenizer, folder)
                (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
            rng = random.Random(f"{args.seed} {name}")
            special = [token["content"] for token in tokenizer["added_tokens"]] or ["<s>"]
            strings = list(texts(rng, args.count, special))
            if not compare(args.binary, name, folder / "tokenizer.json", folder, strings):
                failed.append(name)
    print(f"{len(failed)} wrong: {', '.join(failed)}" if failed else "all right")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
