"""Compares `gguf check` with modelvet, a validator of structure, on damaged files.

Usage: python3 interop/faults/modelvet.py GGUF_BINARY [--count N] [--seed S] [--start FILE|DIR ...] [--keep DIR]

Makes N damaged copies (default: 10000) of small GGUF files: the demo model of `testdata` in three types, a split
model, and the files of --start that modelvet accepts (default: all of the reference data). A copy has a changed field, changed,
added or removed bytes, an entry twice, or another end. Both programs check every copy. Where only one of them refuses it, the finding
of `gguf` and the violation of modelvet must be in the tables of this script, with the reason. Other differences make the exit code 1;
--keep writes one file of each. Needs modelvet.
"""

import argparse
import collections
import json
import multiprocessing
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

# A folder has this script under the name of the package.
sys.path = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
import modelvet

ROOT = Path(__file__).resolve().parents[2]
BATCH = 40
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9

# What only modelvet refuses: its violation, the warning of `gguf check` (None: no warning), the reason.
ONLY_MODELVET = [
    ("VERSION_LEGACY", None, "version 1 is read"),
    ("VERSION_ENDIAN", None, "big-endian files are read"),
    ("KV_ARRAY_NESTED", None, "nested arrays are read up to a depth"),
    ("TRAILING_BYTES", "data-trailing", "warning: loaders ignore bytes after the data"),
    ("TRAILING_BYTES", None, "the data is padded to the alignment or less after the last tensor"),
    ("TENSOR_DATA_EXTENT", None, "padding after the last tensor is missing: loaders do not read it"),
    ("TENSOR_NE_RANGE", "tensor-empty", "warning: a tensor without elements"),
    ("TENSOR_NE_RANGE", "tensor-type-removed", "warning: a removed type; its elements are not counted"),
    ("TENSOR_OFFSET_MISMATCH", "tensor-gap", "warning: a gap between tensors"),
    ("TENSOR_OFFSET_MISMATCH", "tensor-order", "warning: tensors in another order"),
    ("TENSOR_OFFSET_MISMATCH", "tensor-type-unknown", "warning: the size of an unknown type is unknown"),
    ("TENSOR_OFFSET_MISMATCH", "tensor-type-removed", "warning: the size of a removed type is unknown"),
    ("TENSOR_DTYPE_RANGE", "tensor-type-unknown", "warning: types of newer programs and of ik_llama.cpp are copied"),
    ("TENSOR_DTYPE_UNSUPPORTED", "tensor-type-removed", "warning: removed types are copied"),
    ("STR_UTF8", "text-not-utf8", "warning: other bytes than UTF-8 in a value"),
    ("STR_UTF8", None, "tokens are any bytes"),
]
# Errors of `gguf check` on files whose structure modelvet accepts: it does not look at the meaning of keys and tensors.
MEANING = {
    "architecture-other", "count-wrong", "key-missing", "key-type", "key-value", "layer-count",
    "merge-malformed", "merge-unknown", "norm-type", "rope-scaling", "token-duplicate", "token-id-range", "tensor-missing",
    "tensor-shape", "tokenizer-invalid", "tokenizer-length", "tokenizer-merges-missing", "tokenizer-missing",
    "tokenizer-model-wrong", "tokenizer-tokens-missing", "tokenizer-unknown", "vocab-padding", "vocab-rows", "vocab-size",
}


# Files that are damaged; the processes inherit them.
starts = []


class Layout:
    """Positions of the fields of a header: (kind, position, length), and the ranges of its entries."""

    def __init__(self, data):
        self.data, self.at, self.fields, self.keys, self.tensors = data, 0, [("magic", 0, 4)], [], []
        self.at = 4
        self.number("version", 4)
        tensors, keys = self.number("count", 8), self.number("count", 8)
        for _ in range(keys):
            start = self.at
            self.text("key")
            self.value(self.number("type", 4))
            self.keys.append((start, self.at))
        for _ in range(tensors):
            start = self.at
            self.text("name")
            for _ in range(self.number("dimensions", 4)):
                self.number("dimension", 8)
            self.number("tensor type", 4)
            self.number("offset", 8)
            self.tensors.append((start, self.at))

    def number(self, kind, size):
        self.fields.append((kind, self.at, size))
        value = int.from_bytes(self.data[self.at : self.at + size], "little")
        self.skip(size)
        return value

    def skip(self, size):
        self.at += size
        if self.at > len(self.data):
            raise ValueError("the header is longer than the file")

    def text(self, kind):
        length = self.number("length", 8)
        self.fields.append((kind, self.at, length))
        self.skip(length)

    def value(self, kind):
        if kind == STRING:
            self.text("text")
        elif kind == ARRAY:
            inner, count = self.number("type", 4), self.number("count", 8)
            if inner in SIZES:
                self.fields.append(("values", self.at, SIZES[inner] * count))
                self.skip(SIZES[inner] * count)
            else:
                for _ in range(count):
                    self.value(inner)
        else:
            self.number("bool" if kind == 7 else "value", SIZES[kind])


class Start:
    def __init__(self, path):
        self.name, self.data = path.name, path.read_bytes()
        self.layout = Layout(self.data)
        by_kind = collections.defaultdict(list)
        for kind, at, size in self.layout.fields:
            by_kind[kind].append((at, size))
        self.by_kind = dict(by_kind)

    def pick(self, rng):
        """Kinds are equally likely: a vocabulary has thousands of texts and few counts."""
        kind = rng.choice(sorted(self.by_kind))
        return kind, *rng.choice(self.by_kind[kind])


def other_number(rng, old, size):
    top = (1 << (8 * size)) - 1
    value = rng.choice([
        0, 1, 2, 3, 7, 8, 9, 12, 13, 31, 32, 33, 64, 255, 256, 1 << 16, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 62, 1 << 63,
        top, top - 1, top // 2, old + 1, old - 1, old * 2, old // 2, old + 32, old - 32, old ^ (1 << rng.randrange(8 * size)),
        rng.randrange(0, 200), rng.randrange(0, top + 1),
    ])
    return value & top


def change_field(start, data, rng):
    kind, at, size = start.pick(rng)
    if kind in ("key", "name", "text", "values", "magic"):
        return change_byte(data, rng, at, size) if size else data
    old = int.from_bytes(start.data[at : at + size], "little")
    data[at : at + size] = other_number(rng, old, size).to_bytes(size, "little")
    return data


def change_byte(data, rng, at, size):
    at += rng.randrange(size)
    if at < len(data):
        data[at] = rng.choice([0, 1, 2, 0x20, 0x41, 0x7F, 0x80, 0xC0, 0xFF, data[at] ^ (1 << rng.randrange(8))])
    return data


def change_header(start, data, rng):
    return change_byte(data, rng, 0, start.layout.at)


def change_end(start, data, rng):
    """Cuts the file somewhere, or adds bytes."""
    end = rng.choice([rng.randrange(len(data)), rng.randrange(start.layout.at + 1), len(data) - rng.randrange(1, 64)])
    if rng.random() < 0.5:
        return data[: max(0, end)]
    return data + rng.randbytes(rng.choice([1, 4, 31, 32, 33, 64, 1000]))


def move_bytes(start, data, rng):
    at, count = rng.randrange(start.layout.at), rng.choice([1, 2, 4, 8, 32])
    if rng.random() < 0.5:
        del data[at : at + count]
    else:
        data[at:at] = rng.randbytes(count)
    return data


def double_entry(start, data, rng):
    """Writes a key or a tensor twice, with the right count."""
    of_tensors = bool(start.layout.tensors) and rng.random() < 0.5
    entries, counter = (start.layout.tensors, 8) if of_tensors else (start.layout.keys, 16)
    if not entries:
        return data
    first, end = rng.choice(entries)
    data[end:end] = start.data[first:end]
    data[counter : counter + 8] = struct.pack("<Q", len(entries) + 1)
    return data


def swap_tensors(start, data, rng):
    if len(start.layout.tensors) < 2:
        return change_header(start, data, rng)
    (a, a_end), (b, b_end) = sorted(rng.sample(start.layout.tensors, 2))
    return data[:a] + data[b:b_end] + data[a_end:b] + data[a:a_end] + data[b_end:]


CHANGES = [change_field] * 10 + [change_header] * 3 + [change_end] * 2 + [move_bytes] * 2 + [double_entry, swap_tensors]


def damaged(seed, number):
    rng = random.Random(f"{seed} {number}")
    start = rng.choice(starts)
    data = bytearray(start.data)
    data = rng.choice(CHANGES)(start, data, rng)
    # A second change keeps positions only if the first one did.
    if rng.random() < 0.15 and len(data) == len(start.data):
        data = change_field(start, data, rng)
    return start.name, bytes(data)


def verdicts(binary, paths):
    """Returns the findings of `gguf check` by path."""
    done = subprocess.run([binary, "check", "--no-data", "--json", *map(str, paths)], capture_output=True, text=True)
    found = {}
    for line in done.stdout.splitlines():
        document = json.loads(line)
        found[Path(document["file"])] = [(one["code"], one["severity"]) for one in document["findings"]]
    missing = set(paths) - set(found)
    assert not missing, f"no result for {len(missing)} files: exit {done.returncode}\n{done.stderr[-2000:]}"
    return found


def explained(violation, details, findings, data):
    """Reason of a difference, or None."""
    if violation == "NONE":
        errors = {code for code, severity in findings if severity == "error"}
        return "the meaning of keys and tensors" if errors <= MEANING else None
    warnings = {code for code, severity in findings if severity == "warning"}
    for known, code, reason in ONLY_MODELVET:
        if known == violation and (code in warnings or code is None and may_be_silent(violation, details, findings)):
            return reason
    if violation.endswith(("_CAP", "_RANGE", "NAME_LEN", "ALIGN_VALUE")) and is_policy(violation, details):
        return "a limit of modelvet, below the limits of the format"
    return None


def may_be_silent(violation, details, findings):
    if violation == "TENSOR_DATA_EXTENT":
        required, length = details
        return required - length < 65536
    if violation == "TRAILING_BYTES":
        end, length = details
        return length - end < 32
    return True


def is_policy(violation, details):
    """Whether a number is in the limits of the format."""
    value = details[0]
    match violation:
        case "KEY_LEN_CAP":
            return value <= 65535
        case "ALIGN_VALUE":
            return value and value & (value - 1) == 0 and value <= 1 << 20
        case "NAME_LEN" | "STR_LEN_CAP" | "KV_ARRAY_ELEMS_CAP" | "KV_COUNT_RANGE" | "TENSOR_COUNT_RANGE" | "KV_TOTAL_BYTES_CAP":
            return value < 1 << 32
    return False


def batch(job):
    binary, seed, numbers = job
    groups = []
    with tempfile.TemporaryDirectory() as folder:
        made = {}
        for number in numbers:
            name, data = damaged(seed, number)
            path = Path(folder) / f"{number}.gguf"
            path.write_bytes(data)
            made[path] = (number, name, data)
        found = verdicts(binary, list(made))
        for path, (number, name, data) in made.items():
            report = modelvet.verify_gguf(data)
            violation = report.violation_name.removeprefix("MVET_V_")
            errors = sorted({code for code, severity in found[path] if severity == "error"})
            warnings = sorted({code for code, severity in found[path] if severity == "warning"})
            if report.accepted != bool(errors):
                groups.append((number, name, "both accept" if report.accepted else "both refuse", violation, "", None))
                continue
            side = "only gguf refuses" if report.accepted else "only modelvet refuses"
            reason = explained(violation, report.details, found[path], data)
            groups.append((number, name, side, violation, " ".join(errors if report.accepted else warnings), reason))
    return groups


def start_files(binary, given, folder):
    for kind in ("f16", "q8_0", "q4_k_m"):
        path = Path(folder) / f"demo-{kind}.gguf"
        command = [binary, "convert", str(ROOT / "testdata/Tiny-KJV-Llama-4M"), "--outtype", kind, "-o", str(path), "-q"]
        subprocess.run(command, check=True)
        yield path
    yield from (ROOT / "testdata/split/model.gguf", ROOT / "testdata/split/two-merged.gguf")
    for place in given:
        yield from sorted(place.rglob("*.gguf")) if place.is_dir() else [place]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", metavar="GGUF_BINARY")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    shared = ROOT.parent / "shared"
    parser.add_argument("--start", type=Path, nargs="*", default=[shared / "cases", shared / "data"], metavar="FILE|DIR")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        for path in start_files(options.binary, options.start, folder):
            if path.stat().st_size < 10 << 20 and modelvet.verify_path(path, "gguf").accepted:
                starts.append(Start(path))
    numbers = range(options.count)
    jobs = [(options.binary, options.seed, numbers[at : at + BATCH]) for at in range(0, options.count, BATCH)]
    counts, examples = collections.Counter(), {}
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for groups in pool.imap_unordered(batch, jobs):
            for number, name, side, violation, codes, reason in groups:
                group = (side, "") if side.startswith("both") else (side, reason or f"UNEXPLAINED: {violation}, gguf: {codes or 'nothing'}")
                counts[group] += 1
                if group not in examples or number < examples[group][0]:
                    examples[group] = (number, name)
    agree = sum(count for (side, _), count in counts.items() if side.startswith("both"))
    print(f"{options.count} damaged copies of {len(starts)} files: {agree} equal verdicts")
    unexplained = 0
    for (side, reason), count in sorted(counts.items()):
        number, name = examples[side, reason]
        print(f"{count:6} {side:22} {reason}  [{number}: {name}]")
        if reason.startswith("UNEXPLAINED"):
            unexplained += 1
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{number}.gguf").write_bytes(damaged(options.seed, number)[1])
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
