"""Compares token ids with `tokenizers` and `sentencepiece` from PyPI, and with llama.cpp.

Usage: python interop/tokenizer/compare.py GGUF_BINARY DATA_DIR [--count N] [--only KIND[,KIND]] [--official]

DATA_DIR has checkpoints (`zoo`), vocabularies (`vocab`) and text (`tiny-kjv-llama`). For each kind of vocabulary both
sides encode N generated texts (default: 100,000). Unigram and RWKV World vocabularies are generated from the text, and written as
llama.cpp's converter writes them. With `--official` the package llama-cpp-python encodes the texts too.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece
import tokenizers
from gguf import GGUFReader, GGUFWriter, TokenType
from sentencepiece import sentencepiece_model_pb2

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.tokenizer.texts import BLOCKS, texts

# Folders of the zoo by the kind of their tokenizer.
ZOO = {
    "spm": ["llama", "mistral", "mixtral", "gemma2", "gemma3", "phi3"],
    "bpe": ["gpt2", "qwen2", "qwen3", "gpt_neox", "mpt", "bloom", "falcon", "stablelm", "olmo2", "whisper"],
}
# Vocabularies that llama.cpp loads, in `vocab`.
VOCABULARIES = {
    "spm": ["llama-spm", "phi-3"],
    "bpe": ["gpt-2", "gpt-neox", "mpt", "falcon", "starcoder", "qwen2"],
}
# One name of each pre-tokenizer.
PRES = [
    "default", "gpt-2", "starcoder", "falcon", "chameleon", "llama-bpe", "dbrx", "qwen2", "qwen35",
    "jais-2", "minicpm5", "laguna", "bailingmoe", "seed-coder", "ufakzeka", "exaone-moe", "gpt-4o",
    "granite-embed-multi-97m", "tekken", "kimi-k2", "tiny_aya", "youtu", "deepseek-v3", "spark2_5",
    "afmoe", "deepseek-llm", "deepseek-coder", "bloom", "viking", "superbpe",
]
# Combining marks of Unicode versions after that of the package's tables, which it does not reorder.
NEW_MARKS = set("\u05c8\u05c9") | set(map(chr, range(0x1acf, 0x1aec)))
NORMALIZERS = ["nmt_nfkc", "nfkc_cf", "identity"]


def ours(binary, source, strings, *flags):
    """Returns the ids of gguf-kit."""
    lines = "".join(json.dumps(text) + "\n" for text in strings)
    command = [binary, "tokenize", source, "--stdin", "--jsonl", "--no-bos", *flags]
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


class Comparison:
    """Counts differences, and prints the first ones."""

    def __init__(self):
        self.failed = 0

    def add(self, name, strings, expected, got, explain=lambda text: None):
        assert len(strings) == len(expected) == len(got), f"{name}: {len(got)} of {len(strings)}"
        different = [(t, list(e), g) for t, e, g in zip(strings, expected, got) if list(e) != g]
        reasons = [explain(text) for text, _, _ in different]
        unexplained = [d for d, why in zip(different, reasons) if why is None]
        print(f"{name}: {len(strings)} texts, {len(different)} differ, {len(unexplained)} unexplained")
        for why in sorted({why for why in reasons if why}):
            print(f"  {reasons.count(why)}: {why}")
        for text, e, g in unexplained[:4]:
            at = next((i for i, (a, b) in enumerate(zip(e, g)) if a != b), min(len(e), len(g)))
            print(f"  {json.dumps(text)[:300]}\n    id {at}: expected {e[at:at + 12]}, got {g[at:at + 12]}")
        sys.stdout.flush()
        self.failed += len(unexplained)


def huggingface(path, strings):
    """Returns the ids of a `tokenizer.json`, without BOS and EOS."""
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return [e.ids for e in tokenizer.encode_batch(strings, add_special_tokens=False)]


def newer_marks(text):
    """Explains a difference by combining marks that the package's tables lack."""
    return "combining marks that the package does not know" if NEW_MARKS & set(text) else None


def special_texts(path):
    """Returns the added tokens of a `tokenizer.json`."""
    return [token["content"] for token in json.loads(path.read_text())["added_tokens"]]


def control_texts(path):
    """Returns the control and user-defined tokens of a GGUF."""
    fields = GGUFReader(path).fields
    tokens, types = (fields[f"tokenizer.ggml.{name}"].contents() for name in ["tokens", "token_type"])
    return [t for t, kind in zip(tokens, types) if kind in [TokenType.CONTROL, TokenType.USER_DEFINED]]


def official(path, strings, parse_special):
    """Returns the ids of llama.cpp."""
    import llama_cpp

    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    assert model, f"llama.cpp does not load {path}"
    vocab = llama_cpp.llama_model_get_vocab(model)
    results = []
    for text in strings:
        data = text.encode()
        buffer = (llama_cpp.llama_token * (len(data) * 3 + 8))()
        count = llama_cpp.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, parse_special)
        assert count >= 0, "the buffer is too small"
        results.append(buffer[:count])
    llama_cpp.llama_model_free(model)
    return results


def write_vocabulary(path, architecture, model, tokens, types, scores=None, **flags):
    """Writes a GGUF with a vocabulary only."""
    writer = GGUFWriter(path, architecture)
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if scores is not None:
        writer.add_token_scores(scores)
    for name, value in flags.items():
        getattr(writer, f"add_{name}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def pairs_gguf(pre, path):
    """Writes a vocabulary of all pairs of bytes in random order: ids depend on where the pre-tokenizer splits text."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = [chr(b) if b in plain else chr(256 + others.index(b)) for b in range(256)]
    pairs = [(a, b) for a in letters for b in letters]
    random.Random(3).shuffle(pairs)
    tokens = [*letters, *(a + b for a, b in pairs), "<|endoftext|>"]
    writer = GGUFWriter(path, "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.NORMAL] * (len(tokens) - 1) + [TokenType.CONTROL])
    writer.add_token_merges([f"{a} {b}" for a, b in pairs])
    writer.add_eos_token_id(len(tokens) - 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def bert_gguf(folder, path):
    """Writes the vocabulary of `tokenizer.json` with U+2581 before tokens that begin a word."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    special = {token["content"] for token in tokenizer["added_tokens"]}
    vocab = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    types = [TokenType.CONTROL if token in special else TokenType.NORMAL for token in vocab]
    tokens = [t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t in vocab]
    ids = {f"{role}_token_id": vocab.index(token) for role, token in [
        ("unk", "[UNK]"), ("bos", "[CLS]"), ("sep", "[SEP]"), ("pad", "[PAD]"), ("mask", "[MASK]")]}
    write_vocabulary(path, "bert", "bert", tokens, types, **ids)


def unigram_gguf(text, normalizer, folder, byte_fallback):
    """Trains a Unigram model on the text, and writes it as a SentencePiece model and as a GGUF."""
    prefix = folder / f"unigram-{normalizer}-{byte_fallback}"
    extra = normalizer == "identity"
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(prefix), model_type="unigram", vocab_size=1500,
        normalization_rule_name=normalizer, byte_fallback=byte_fallback, character_coverage=1.0,
        remove_extra_whitespaces=not extra, add_dummy_prefix=not extra, minloglevel=2,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
    )
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(prefix.with_suffix(".model").read_bytes())
    kinds = model.SentencePiece
    types = {
        kinds.NORMAL: TokenType.NORMAL, kinds.UNKNOWN: TokenType.UNKNOWN, kinds.CONTROL: TokenType.CONTROL,
        kinds.USER_DEFINED: TokenType.USER_DEFINED, kinds.UNUSED: TokenType.UNUSED, kinds.BYTE: TokenType.BYTE,
    }
    path = prefix.with_suffix(".gguf")
    spec = model.normalizer_spec
    flags = {"precompiled_charsmap": spec.precompiled_charsmap} if spec.precompiled_charsmap else {}
    write_vocabulary(
        path, "t5", "t5", [p.piece.encode() for p in model.pieces], [types[p.type] for p in model.pieces],
        [p.score for p in model.pieces], add_space_prefix=spec.add_dummy_prefix,
        remove_extra_whitespaces=spec.remove_extra_whitespaces, eos_token_id=1, unk_token_id=2, **flags,
    )
    return prefix.with_suffix(".model"), path


def world(corpus):
    """Returns tokens like those of RWKV World: all bytes, words, characters, parts of characters."""
    rng = random.Random(7)
    tokens = {bytes([byte]): None for byte in range(256)}
    for word in sorted(set(corpus.split()))[:4000]:
        tokens[word.encode()] = tokens[b" " + word.encode()] = None
    tokens |= {token: None for token in [b"\n\n", b"\r\n", b"  ", b"\\", b"'", b'"', b"it's \"so\"", b"\\n"]}
    for start, end in BLOCKS:
        for _ in range(40):
            text = "".join(chr(rng.randrange(start, end)) for _ in range(rng.randrange(1, 4))).encode()
            tokens[text] = tokens[text[:rng.randrange(1, len(text) + 1)]] = None
    return sorted(tokens, key=lambda token: (len(token), token))


def world_ids(tokens, text):
    """Returns the ids of the longest token at each position; ids begin with 1."""
    ids = {token: i for i, token in enumerate(tokens, 1)}
    longest = max(map(len, tokens))
    data, at, result = text.encode(), 0, []
    while at < len(data):
        size = next(n for n in range(longest, 0, -1) if data[at : at + n] in ids and at + n <= len(data))
        result.append(ids[data[at : at + size]])
        at += size
    return result


def world_line(number, token):
    """Returns a line of the published vocabulary file."""
    try:
        literal = repr(token.decode())
    except UnicodeDecodeError:
        literal = repr(token)
    return f"{number} {literal} {len(token)}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("data", type=Path)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--official", action="store_true")
    args = parser.parse_args()
    selected = lambda kind: args.only is None or kind in args.only
    comparison = Comparison()
    text = args.data / "tiny-kjv-llama" / "heldout.txt"
    corpus = text.read_text()

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if selected("wordpiece"):
            bert = args.data / "zoo" / "bert"
            path = folder / "bert.gguf"
            bert_gguf(bert, path)
            strings = list(texts(args.count, corpus, special_texts(bert / "tokenizer.json")))
            expected = huggingface(bert / "tokenizer.json", strings)
            comparison.add("wordpiece", strings, expected, ours(args.binary, path, strings))
            if args.official:
                got = ours(args.binary, path, strings, "--compat", "llama.cpp")
                comparison.add("wordpiece, llama.cpp", strings, official(path, strings, True), got)
        for normalizer in NORMALIZERS if selected("unigram") else []:
            for byte_fallback in [False, True]:
                model, path = unigram_gguf(text, normalizer, folder, byte_fallback)
                strings = list(texts(args.count, corpus, ["<s>", "</s>", "<unk>", "<pad>", "<0x0A>"]))
                expected = sentencepiece.SentencePieceProcessor(model_file=str(model)).encode(strings)
                name = f"unigram {normalizer}{' with bytes' if byte_fallback else ''}"
                plain = ["--no-parse-special"]
                comparison.add(name, strings, expected, ours(args.binary, path, strings, *plain))
                if args.official:
                    got = ours(args.binary, path, strings, *plain, "--compat", "llama.cpp")
                    comparison.add(f"{name}, llama.cpp", strings, official(path, strings, False), got)
        if selected("rwkv"):
            tokens = world(corpus)
            types = [TokenType.CONTROL] + [TokenType.NORMAL] * len(tokens)
            path = folder / "world.gguf"
            escaped = [repr(token)[2:-1].encode() for token in tokens]
            write_vocabulary(path, "rwkv7", "rwkv", [b"<s>", *escaped], types, bos_token_id=0, eos_token_id=0)
            verbatim = folder / "verbatim.gguf"
            writer = GGUFWriter(verbatim, "rwkv7")
            writer.add_string("tokenizer.rwkv.world", "".join(map(world_line, range(1, len(tokens) + 1), tokens)))
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.close()
            strings = list(texts(args.count, corpus, ["<s>", "User: ", "\n\n"]))
            expected = [world_ids(tokens, string) for string in strings]
            for name, source in [("rwkv", path), ("rwkv, verbatim", verbatim)]:
                got = ours(args.binary, source, strings, "--no-parse-special")
                comparison.add(name, strings, expected, got)
            if args.official:
                got = ours(args.binary, path, strings, "--no-parse-special", "--compat", "llama.cpp")
                comparison.add("rwkv, llama.cpp", strings, official(path, strings, False), got)
        for kind, names in ZOO.items():
            for name in names if selected(kind) else []:
                source = args.data / "zoo" / name
                strings = list(texts(args.count, corpus, special_texts(source / "tokenizer.json")))
                expected = huggingface(source / "tokenizer.json", strings)
                got = ours(args.binary, source, strings)
                comparison.add(f"{kind} {name}", strings, expected, got, newer_marks)
        for kind, names in VOCABULARIES.items():
            for name in names if selected(kind) and args.official else []:
                path = args.data / "vocab" / f"ggml-vocab-{name}.gguf"
                strings = list(texts(args.count, corpus, control_texts(path)))
                got = ours(args.binary, path, strings, "--compat", "llama.cpp")
                comparison.add(f"{kind} {name}, llama.cpp", strings, official(path, strings, True), got)
        for pre in PRES if selected("pre") and args.official else []:
            path = folder / "pairs.gguf"
            pairs_gguf(pre, path)
            strings = list(texts(args.count, corpus, ["<|endoftext|>"]))
            got = ours(args.binary, path, strings, "--compat", "llama.cpp")
            comparison.add(f"pre {pre}, llama.cpp", strings, official(path, strings, True), got)
    sys.exit(comparison.failed > 0)


if __name__ == "__main__":
    main()
