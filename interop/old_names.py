"""The programs of llama.cpp and the scripts of the Python package `gguf`, beside gguf under their names.

Usage: python old_names.py GGUF_BINARY PROGRAMS LLAMA_CPP CHECKPOINT TEXT FOLDER
       python old_names.py --lists LISTS PROGRAMS LLAMA_CPP

PROGRAMS is the folder with llama-quantize, llama-gguf-split, llama-imatrix, llama-perplexity,
llama-tokenize, llama-gguf-hash, llama-bench and llama-export-lora, LLAMA_CPP the sources with the
converters; the package `gguf` is that of this Python, and the converters want torch and transformers.
CHECKPOINT is Tiny-KJV-Llama-4M, TEXT some 60 kB in UTF-8, FOLDER an empty one for what is written.

Runs the command lines that the originals document with the originals and, through the links that
`gguf links` makes, with gguf. Compared are the files, byte by byte where nothing is computed in another
order, and the lines on the standard output that scripts read.

With --lists, writes the flags of the originals' own help to LISTS (crates/cli/tests/old): a line for
each, names and the number of values.
"""

import argparse
import csv
import hashlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

LLAMA = "quantize gguf-split imatrix perplexity tokenize gguf-hash bench export-lora".split()
SCRIPTS = {
    "gguf-dump": "gguf_dump",
    "gguf-set-metadata": "gguf_set_metadata",
    "gguf-new-metadata": "gguf_new_metadata",
    "gguf-convert-endian": "gguf_convert_endian",
    "gguf-hash": "gguf_hash",
}
CONVERTERS = ["convert_hf_to_gguf.py", "convert_lora_to_gguf.py"]
# Values that the help does not show.
UNSHOWN = {"--split-max-tensors": 1, "--split-max-size": 1, "--no-tensor-first-split": 0}
failed = 0


def check(what, fine, more=""):
    global failed
    failed += not fine
    print(f"{'ok     ' if fine else 'DIFFERS'} {what}{'' if fine else '  ' + str(more)}", flush=True)


# The flags of the originals.


def flags_of_help(text):
    """Names and number of values of each flag in the help of a program of llama.cpp."""
    for line in text.splitlines():
        found = re.match(r"^ {0,6}(-[-\w].*)$", line)
        if not found or found[1].startswith("---"):
            continue
        rest, names, gap = found[1], [], ""
        while (name := re.match(r"(--?[A-Za-z0-9][-\w]*)(,?\s*)", rest)) is not None:
            names.append(name[1])
            gap, rest = name[2], rest[name.end() :]
            if "," not in gap and not rest.startswith("-"):
                break
        value = "" if len(gap) >= 2 else re.split(r"\s{2,}", rest)[0]
        value = re.sub(r"<[^>]*>|\{[^}]*\}|\[[^\]]*\]", "V", value)
        count = len(re.sub(r"\(.*?\)", "", value).split())
        yield names, UNSHOWN.get(names[0], count)


def flags_of_parser(run):
    """The same of a script that uses argparse."""
    found = []

    class Parsed(Exception):
        pass

    def parse_args(parser, *_):
        for action in parser._actions:
            if action.option_strings:
                count = 1 if action.nargs is None else action.nargs
                found.append((action.option_strings, 0 if count == "?" else int(count)))
        raise Parsed

    original, argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_args, parse_args
    try:
        run()
    except Parsed:
        pass
    finally:
        argparse.ArgumentParser.parse_args = original
    return found


def write_lists(folder, programs, sources):
    lists = {}
    for name in LLAMA:
        help = subprocess.run([programs / f"llama-{name}", "--help"], capture_output=True, text=True)
        lists[f"llama-{name}"] = list(flags_of_help(help.stdout + help.stderr))
    for name, module in SCRIPTS.items():
        run = lambda module=module: runpy.run_module(f"gguf.scripts.{module}", run_name="__main__")
        lists[name] = flags_of_parser(run)
    sys.path.insert(0, str(sources))
    for name in CONVERTERS:
        lists[name] = flags_of_parser(lambda: runpy.run_path(str(sources / name), run_name="__main__"))
    for name, flags in lists.items():
        lines = [f"{' '.join(names)} {count}\n" for names, count in flags]
        head = f"# Flags of {name} by its help: names, and how many values follow. By interop/old_names.py.\n"
        (folder / f"{name}.txt").write_text(head + "".join(lines))
        print(f"{name}: {len(lines)} flags")


# Both beside each other.


class Pair:
    """A program and our link, each in a folder of its own with the same files."""

    def __init__(self, args):
        self.args = args
        self.folders = [args.folder / "original", args.folder / "gguf"]
        self.links = args.folder / "links"
        self.links.mkdir()
        subprocess.run([args.gguf, "links", self.links], check=True, capture_output=True)
        for folder in self.folders:
            folder.mkdir()

    def command(self, which, name):
        if which == 1:
            return [self.links / name]
        if name in SCRIPTS:
            return [sys.executable, "-m", f"gguf.scripts.{SCRIPTS[name]}"]
        if name in CONVERTERS:
            return [sys.executable, self.args.sources / name]
        return [self.args.programs / name]

    def run(self, name, *words, code=0, answer=None):
        """What both print: standard output and standard error of each. Both end with this code."""
        said = []
        for which in (0, 1):
            command = [str(word) for word in [*self.command(which, name), *words]]
            done = subprocess.run(
                command, cwd=self.folders[which], capture_output=True, input=answer or b""
            )
            if done.returncode != code:
                what = "the original" if which == 0 else "ours"
                check(f"{name} {' '.join(map(str, words))}", False, f"{what}: exit {done.returncode}")
                print(done.stderr.decode(errors="replace")[-600:])
            said.append((done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")))
        return said

    def same_output(self, name, *words, **kept):
        (one, _), (two, _) = self.run(name, *words, **kept)
        check(f"{name} {' '.join(map(str, words))}: same output", one == two, f"{one[:300]!r} {two[:300]!r}")

    def both(self, file):
        return [folder / file for folder in self.folders]

    def put(self, file, data):
        for path in self.both(file):
            path.write_bytes(data)

    def same_file(self, what, file):
        one, two = (path.read_bytes() if path.exists() else None for path in self.both(file))
        check(f"{what}: same {file}", one is not None and one == two, "missing" if None in (one, two) else "")

    def same_tensors(self, what, file, but=()):
        """The same tensors with the same bytes, and the same keys, but for some."""
        contents = []
        for path in self.both(file):
            if not path.exists():
                check(f"{what}: {path}", False, "is missing")
                return
            keys, tensors = contents_of(path)
            contents.append(({k: v for k, v in keys.items() if k not in but}, tensors))
        (keys, tensors), (our_keys, our_tensors) = contents
        check(f"{what}: same tensors in {file}", tensors == our_tensors)
        check(f"{what}: same keys in {file}", keys == our_keys, keys.items() ^ our_keys.items())


def contents_of(path):
    from gguf import GGUFReader

    reader = GGUFReader(path)
    keys = {k: str(field.contents()) for k, field in reader.fields.items() if not k.startswith("GGUF.")}
    digest = lambda tensor: hashlib.sha256(tensor.data.tobytes()).hexdigest()
    return keys, {t.name: (t.tensor_type.name, t.shape.tolist(), digest(t)) for t in reader.tensors}


def quantize(pair):
    for words, file in [
        (["model.gguf", "q4_k_m", "2"], "ggml-model-Q4_K_M.gguf"),
        (["model.gguf", "15"], "ggml-model-Q4_K.gguf"),
        (["model.gguf", "small.gguf", "Q5_K_S"], "small.gguf"),
        (["--leave-output-tensor", "--pure", "model.gguf", "pure.gguf", "q4_0"], "pure.gguf"),
        (["--output-tensor-type", "q5_k", "--token-embedding-type", "q3_k", "model.gguf", "t.gguf", "q4_k_m"], "t.gguf"),
        (["--tensor-type", r"\.(\d*[13579])\.attn_k=q5_k", "--tensor-type", "ATTN_Q=q3_k", "model.gguf", "r.gguf", "q4_k_m"], "r.gguf"),
        # Mixes count blocks before any are left out, and ours after it: of one type there is no difference.
        (["--tensor-type", "attn_v=q5_k", "--prune-layers", "1,2", "model.gguf", "p.gguf", "q8_0"], "p.gguf"),
        (["--override-kv", "llama.context_length=int:77", "model.gguf", "o.gguf", "copy"], "o.gguf"),
        # What is there is replaced.
        (["model.gguf", "small.gguf", "q8_0"], "small.gguf"),
    ]:
        what = f"llama-quantize {' '.join(words)}"
        said = pair.run("llama-quantize", *words)
        pair.same_tensors(what, file)
        lines = [sorted(re.findall(r"^\[ *\d+/ *\d+\] (.*)$", err, re.M)) for _, err in said]
        check(f"{what}: same lines of tensors", len(lines[0]) > 0 and lines[0] == lines[1])
        # The original divides by the weights of blocks that are left out, too.
        end = "MiB" if "--prune-layers" in words else "$"
        sizes = [re.findall(rf"(?:model|quant) size .*{end}", err, re.M) for _, err in said]
        check(f"{what}: same sizes", len(sizes[0]) == 2 and sizes[0] == sizes[1], sizes)
    said = pair.run("llama-quantize", "--dry-run", "model.gguf", "q4_k_m")
    sizes = [re.findall(r"(?:model|quant) size .*", err) for _, err in said]
    check("llama-quantize --dry-run: same sizes", len(sizes[0]) == 2 and sizes[0] == sizes[1], sizes)
    pair.run("llama-quantize", "model.gguf", "model.gguf", "q4_k_m", code=1)
    pair.run("llama-quantize", "nothing.gguf", "x.gguf", "q4_k_m", code=1)
    pair.run("llama-quantize", "--no-such-flag", "model.gguf", "q4_k_m", code=1)


def split(pair):
    for words in [[], ["--split-max-tensors", "10"], ["--split-max-size", "2M"], ["--split", "--split-max-size", "2M", "--no-tensor-first-split"]]:
        pair.same_output("llama-gguf-split", *words, "model.gguf", "shard")
        names = [sorted(path.name for path in folder.glob("shard-*")) for folder in pair.folders]
        check(f"llama-gguf-split {' '.join(words)}: same names", names[0] == names[1], names)
        for name in names[0]:
            pair.same_file(f"llama-gguf-split {' '.join(words)}", name)
        if words == ["--split-max-size", "2M"]:
            pair.same_output("llama-gguf-split", "--merge", names[0][0], "merged.gguf")
            pair.same_file("llama-gguf-split --merge", "merged.gguf")
            pair.run("llama-gguf-split", "--merge", names[0][0], "merged.gguf", code=1)
        if words == ["--split-max-tensors", "10"]:
            for out, prefix in [(["kept.gguf"], "kept"), ([], "ggml-model-Q4_0")]:
                pair.run("llama-quantize", "--keep-split", names[0][0], *out, "q4_0")
                pair.same_tensors("llama-quantize --keep-split", f"{prefix}-00002-of-00004.gguf")
        for path in [path for folder in pair.folders for path in folder.glob("shard-*")]:
            path.unlink()
    pair.same_output("llama-gguf-split", "--dry-run", "--split-max-size", "2M", "model.gguf", "shard")
    pair.run("llama-gguf-split", "--merge", "--split", "model.gguf", "shard", code=1)


def hashes(pair):
    for words in [[], ["--xxh64"], ["--sha1"], ["--sha256"], ["--uuid"], ["--all", "--no-layer"], ["--all"]]:
        pair.same_output("llama-gguf-hash", *words, "model.gguf")
    done = subprocess.run([pair.args.programs / "llama-gguf-hash", "--all", "model.gguf"], cwd=pair.folders[0], capture_output=True)
    pair.put("model.gguf.manifest", done.stdout)
    for words in [[], ["--xxh64"], ["--all"]]:
        pair.same_output("llama-gguf-hash", "--check", "model.gguf.manifest", *words, "model.gguf")
    pair.put("wrong.manifest", re.sub(rb"(?m)^(\w+ +)\w\w", rb"\g<1>zz", done.stdout))
    pair.same_output("llama-gguf-hash", "--check", "wrong.manifest", "model.gguf", code=1)
    pair.put("other.manifest", done.stdout.replace(b"model.gguf", b"other.gguf"))
    pair.same_output("llama-gguf-hash", "--check", "other.manifest", "model.gguf", code=3)
    pair.put("no.manifest", b"nothing\n")
    pair.same_output("llama-gguf-hash", "--check", "no.manifest", "model.gguf", code=4)
    pair.same_output("llama-gguf-hash", "--check", "missing.manifest", "model.gguf", code=5)
    for words in [[], ["--no-layer"]]:
        pair.same_output("gguf-hash", *words, "model.gguf")


def tokenize(pair):
    pair.put("prompt.txt", "In the beginning\nGod created \"the heaven\" \\ and the earth. \u00e9\n".encode())
    for words in [
        ["-p", "Hello world"],
        ["-p", "Hello world", "--ids"],
        ["-p", r"a\nb\x41\q", "--ids"],
        ["-p", r"a\nb", "--no-escape", "--ids"],
        ["-f", "prompt.txt", "--ids"],
        ["-f", "prompt.txt", "--show-count", "--log-disable"],
        ["-p", "<s>x</s>", "--ids", "--no-parse-special"],
        ["-p", "<s>x</s>", "--ids", "--no-bos"],
    ]:
        pair.same_output("llama-tokenize", "-m", "model.gguf", *words)
    pair.same_output("llama-tokenize", "-m", "model.gguf", "--stdin", "--ids", answer=b"In the beginning\\n")
    pair.run("llama-tokenize", "-m", "model.gguf", code=1)
    pair.run("llama-tokenize", "-m", "nothing.gguf", "-p", "x", code=1)


def near(one, two, share):
    return abs(one - two) <= share * max(abs(one), abs(two))


def perplexity(pair):
    words = ["-m", "model.gguf", "-f", "text.txt", "-c", "128", "--chunks", "8", "-ngl", "99"]
    # The original sometimes ends before it has printed all.
    for _ in range(9):
        said = pair.run("llama-perplexity", *words)
        if "Final estimate" in said[0][1] and "[8]" in said[0][0]:
            break
    chunks = [re.findall(r"\[(\d+)\](\d+\.\d{4}),", out) for out, _ in said]
    check("llama-perplexity: chunks", len(chunks[0]) == 8 and [n for n, _ in chunks[0]] == [n for n, _ in chunks[1]])
    fine = all(near(float(a), float(b), 0.03) for (_, a), (_, b) in zip(*chunks))
    check("llama-perplexity: perplexities within 3 %", fine, chunks)
    final = [re.findall(r"Final estimate: PPL = (\d+\.\d{4}) \+/- (\d+\.\d{5})", out + err) for out, err in said]
    fine = all(len(one) == 1 for one in final) and near(float(final[0][0][0]), float(final[1][0][0]), 0.03)
    check("llama-perplexity: final estimate", fine, final)
    for more in [["--ppl-stride", "64"], ["--ppl-output-type", "1"]]:
        pair.run("llama-perplexity", *words, *more)
    pair.run("llama-perplexity", "-m", "model.gguf", "-f", "text.txt", "-c", "128", "--chunks", "4", "--kl-divergence-base", "base.kld")
    sizes = [path.stat().st_size for path in pair.both("base.kld")]
    check("llama-perplexity --kl-divergence-base: same size", sizes[0] == sizes[1], sizes)
    # Ours reads theirs.
    shutil.copy(*pair.both("base.kld"))
    for _ in range(9):
        said = pair.run("llama-perplexity", "-m", "small.gguf", "--kl-divergence-base", "base.kld", "--kl-divergence", "-c", "128")
        if "Same top p:" in said[0][0]:
            break
    lines = [[line for line in out.splitlines() if line.strip() and "minutes" not in line] for out, _ in said]
    shape = lambda line: re.sub(r" +", " ", re.sub(r"-?\d+\.\d+", lambda n: f"N{len(n[0].split('.')[1])}", line))
    shapes = [[shape(line) for line in one] for one in lines]
    check("llama-perplexity --kl-divergence: same lines but for numbers", len(shapes[0]) > 30 and shapes[0] == shapes[1], set(shapes[0]) ^ set(shapes[1]))
    pair.run("llama-perplexity", "-m", "nothing.gguf", "-f", "text.txt", code=1)


def imatrix(pair):
    words = ["-m", "model.gguf", "-f", "text.txt", "-c", "128", "--chunks", "8"]
    for more, file in [(["-ngl", "99"], "imatrix.gguf"), (["--output-format", "dat", "-o", "legacy.dat"], "legacy.dat")]:
        pair.run("llama-imatrix", *words, *more)
        check(f"llama-imatrix {' '.join(more)}: same size", len({path.stat().st_size for path in pair.both(file)}) == 1)
    from gguf import GGUFReader

    readers = [GGUFReader(path) for path in pair.both("imatrix.gguf")]
    sums = [{t.name: t.data.astype("float64").sum() for t in reader.tensors} for reader in readers]
    check("llama-imatrix: same tensors", sums[0].keys() == sums[1].keys())
    check("llama-imatrix: sums within 3 %", all(near(sums[0][name], sums[1].get(name, 0), 0.03) for name in sums[0]))
    shutil.copy(*pair.both("imatrix.gguf"))
    shutil.copy(*pair.both("legacy.dat"))
    # Not documented so, but versions of the original want a model here.
    of = ["-m", "model.gguf", "--in-file"]
    pair.run("llama-imatrix", *of, "legacy.dat", "-o", "new.gguf")
    pair.run("llama-imatrix", *of, "imatrix.gguf", "--output-format", "dat", "-o", "old.dat")
    pair.run("llama-imatrix", *of, "imatrix.gguf,imatrix.gguf", "-o", "combined.gguf")
    for file in ["old.dat"]:
        pair.same_file("llama-imatrix", file)
    # A text that is read twice is named once here.
    pair.same_tensors("llama-imatrix --in-file", "combined.gguf", ["imatrix.datasets"])
    pair.run("llama-imatrix", *of, "imatrix.gguf", "--show-statistics")
    pair.run("llama-quantize", "--imatrix", "imatrix.gguf", "model.gguf", "iq2.gguf", "iq2_xs")
    pair.same_tensors("llama-quantize --imatrix", "iq2.gguf")
    pair.run("llama-quantize", "--imatrix", "imatrix.gguf", "--include-weights", "attn_v", "--include-weights", "ffn_down", "model.gguf", "some.gguf", "q4_k_m")
    pair.same_tensors("llama-quantize --include-weights", "some.gguf")
    pair.run("llama-imatrix", "-m", "model.gguf", code=1)


def bench(pair):
    words = ["-m", "model.gguf", "-p", "8,16", "-n", "4", "-r", "2"]
    said = pair.run("llama-bench", *words, "-o", "json")
    tests = [json.loads(out) for out, _ in said]
    check("llama-bench -o json: same fields", [list(t) for t in tests[0]] == [list(t) for t in tests[1]])
    of = lambda t: [t[k] for k in "n_prompt n_gen n_depth model_filename model_size model_n_params".split()] + [len(t["samples_ns"])]
    check("llama-bench -o json: same tests", [of(t) for t in tests[0]] == [of(t) for t in tests[1]])
    types = [[{k: type(v) for k, v in t.items()} for t in one] for one in tests]
    check("llama-bench -o json: same types", types[0] == types[1])
    said = pair.run("llama-bench", *words, "-o", "jsonl")
    keys = [[list(json.loads(line)) for line in out.splitlines()] for out, _ in said]
    check("llama-bench -o jsonl: same fields", keys[0] == keys[1])
    said = pair.run("llama-bench", *words, "-o", "csv")
    rows = [list(csv.reader(io.StringIO(out))) for out, _ in said]
    check("llama-bench -o csv: same columns", rows[0][0] == rows[1][0] and len(rows[0]) == len(rows[1]))
    said = pair.run("llama-bench", *words, "-o", "sql")
    check("llama-bench -o sql: same table", said[0][0].split("INSERT")[0] == said[1][0].split("INSERT")[0])
    said = pair.run("llama-bench", *words, "-o", "md")
    tables = [[line for line in out.splitlines() if line.startswith("|")] for out, _ in said]
    check("llama-bench -o md: same head", tables[0][:2] == tables[1][:2])
    test = lambda line: [cell.strip() for cell in line.split("|")][6]
    check("llama-bench -o md: same tests", list(map(test, tables[0])) == list(map(test, tables[1])))


def export_lora(pair):
    gguf = pair.args.gguf
    tuned, adapter = pair.args.folder / "tuned.gguf", pair.args.folder / "adapter.gguf"
    model = pair.folders[0] / "model.gguf"
    bytes_ = bytearray(model.read_bytes())
    for at in range(len(bytes_) - 400_000, len(bytes_) - 1, 64):
        bytes_[at] ^= 1
    tuned.write_bytes(bytes_)
    subprocess.run([gguf, "lora", "extract", model, tuned, "--rank", "4", "-o", adapter], check=True, capture_output=True)
    pair.put("adapter.gguf", adapter.read_bytes())
    for words, file in [
        (["--lora", "adapter.gguf"], "ggml-lora-merged-f16.gguf"),
        (["--lora-scaled", "adapter.gguf:0.5", "-o", "half.gguf"], "half.gguf"),
    ]:
        pair.run("llama-export-lora", "-m", "model.gguf", *words, "-t", "2")
        from gguf import GGUFReader

        readers = [GGUFReader(path) for path in pair.both(file)]
        tensors = [{t.name: (t.tensor_type, t.data.astype("float64")) for t in reader.tensors} for reader in readers]
        check(f"llama-export-lora {file}: same types", {k: v[0] for k, v in tensors[0].items()} == {k: v[0] for k, v in tensors[1].items()})
        worst = max(abs(tensors[0][name][1] - tensors[1][name][1]).max() for name in tensors[0])
        check(f"llama-export-lora {file}: weights within 0.001", worst < 1e-3, worst)


def package(pair):
    pair.put("same.gguf", pair.folders[0].joinpath("small.gguf").read_bytes())
    for words in [[], ["--no-tensors"], ["--json"], ["--json", "--json-array"], ["--markdown"], ["--data-offset"], ["--data-alignment"]]:
        for model in ["model.gguf", "same.gguf", "imatrix.gguf"]:
            pair.same_output("gguf-dump", *words, model)
    pair.run("gguf-dump", "--no-such-flag", "model.gguf", code=2)
    pair.put("set.gguf", pair.folders[0].joinpath("model.gguf").read_bytes())
    for key, value, code in [
        ("tokenizer.ggml.bos_token_id", "2", 0),
        ("llama.attention.layer_norm_rms_epsilon", "0.001", 0),
        ("tokenizer.ggml.add_eos_token", "True", 0),
        ("llama.context_length", "512", 0),
        ("llama.context_length", "many", 1),
        ("general.name", "x", 1),
        ("no.such.key", "1", 1),
    ]:
        said = pair.run("gguf-set-metadata", "--force", "set.gguf", key, value, code=code)
        pair.same_file(f"gguf-set-metadata {key} {value}", "set.gguf")
        told = [[line for line in err.splitlines() if line.startswith("INFO")] for _, err in said]
        check(f"gguf-set-metadata {key} {value}: same messages", code == 1 or told[0] == told[1], told)
    for answer in [b"YES\n", b"no\n"]:
        pair.same_output("gguf-set-metadata", "set.gguf", "llama.context_length", "256", answer=answer)
        pair.same_file(f"gguf-set-metadata, {answer}", "set.gguf")
    pair.run("gguf-set-metadata", "--dry-run", "set.gguf", "llama.context_length", "1")
    pair.same_file("gguf-set-metadata --dry-run", "set.gguf")
    pair.put("chat.jinja", b"{% for m in messages %}{{ m.content }}{% endfor %}")
    templates = [{"name": "default", "template": "a{{ messages }}"}, {"name": "tool use", "template": "b"}]
    pair.put("tokenizer_config.json", json.dumps({"chat_template": templates}).encode())
    for words in [
        ["--general-name", "My model", "--general-description", "What it is"],
        ["--general-description", "D", "--chat-template-file", "chat.jinja"],
        ["--chat-template-config", "tokenizer_config.json"],
        ["--chat-template", "{{ messages }}"],
        ["--chat-template", json.dumps(templates)],
        ["--pre-tokenizer", "default", "--remove-metadata", "general.name", "--remove-metadata", "no.such.key"],
        ["--special-token", "eos", "<unk>", "--special-token-by-id", "padding", "5", "--special-token", "nope", "x"],
    ]:
        pair.run("gguf-new-metadata", *words, "--force", "model.gguf", "new.gguf")
        pair.same_file(f"gguf-new-metadata {' '.join(words)}", "new.gguf")
    pair.run("gguf-new-metadata", "--special-token", "bos", "no such token", "--force", "model.gguf", "x.gguf", code=1)
    pair.put("endian.gguf", pair.folders[0].joinpath("model.gguf").read_bytes())
    pair.run("gguf-convert-endian", "--dry-run", "endian.gguf", "big")
    pair.run("gguf-convert-endian", "endian.gguf", "big", answer=b"YES\n")
    pair.same_file("gguf-convert-endian", "endian.gguf")
    pair.same_output("gguf-dump", "--no-tensors", "endian.gguf")


def convert(pair):
    for words, file in [
        (["--outfile", "c-{ftype}.gguf", "--outtype", "q8_0", "--no-lazy"], "c-q8_0.gguf"),
        (["--outfile", "c-{ftype}.gguf", "--verbose"], "c-f16.gguf"),
        (["--outfile", "named.gguf", "--outtype", "f32", "--model-name", "Another"], "named.gguf"),
    ]:
        pair.run("convert_hf_to_gguf.py", pair.args.checkpoint, *words)
        pair.same_tensors(f"convert_hf_to_gguf.py {' '.join(words)}", file)
    pair.run("convert_hf_to_gguf.py", "nothing", code=1)
    pair.run("convert_hf_to_gguf.py", code=2)


def main():
    if sys.argv[1:2] == ["--lists"]:
        folder, programs, sources = map(Path, sys.argv[2:])
        return write_lists(folder, programs.absolute(), sources.absolute())
    parser = argparse.ArgumentParser()
    for name in "gguf programs sources checkpoint text folder".split():
        parser.add_argument(name, type=lambda word: Path(word).absolute())
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    os.environ.pop("LLAMA_ARG_MODEL", None)
    pair = Pair(args)
    model = args.folder / "model.gguf"
    subprocess.run([args.gguf, "convert", args.checkpoint, "-o", model, "--outtype", "f16"], check=True, capture_output=True)
    pair.put("model.gguf", model.read_bytes())
    pair.put("text.txt", args.text.read_bytes())
    for part in [quantize, split, hashes, tokenize, perplexity, imatrix, bench, export_lora, package, convert]:
        part(pair)
    print(f"{failed} differ" if failed else "all as the originals")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
