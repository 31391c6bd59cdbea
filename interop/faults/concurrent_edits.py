"""Runs concurrent editors and readers of one file: no edit is lost, and readers see a complete file.

Usage: python3 interop/faults/concurrent_edits.py GGUF_BINARY CHECKPOINT_DIR [ROUNDS]

Each round starts two or three editors of all kinds and up to two readers at once on one small model; every other round begins with
a model that has padding for edits in place, and some processes open it through a symbolic link. At the end each editor has either
made its change, which is still present, or failed with a message that names the file; each reader has seen a file in which each
edit is either complete or absent; tensors have the right names and data, by the reader in this script; and no other file is left.
"""

import argparse
import hashlib
import json
import random
import struct
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

REFUSED = "another process is changing it"
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def ours(binary, *args):
    """Runs the binary and returns its standard output."""
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"gguf {args}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


class Content:
    """Byte order, keys, and digests of the tensors' bytes of a GGUF."""

    def __init__(self, path):
        self.bytes, self.at = path.read_bytes(), 0
        assert self.bytes[:4] == b"GGUF", "not a GGUF"
        self.order = "<" if self.bytes[4] == 3 else ">"
        self.at = 8
        n_tensors, n_keys = self.number("Q"), self.number("Q")
        self.keys = {self.string(): self.value(self.number("I")) for _ in range(n_keys)}
        tensors = []
        for _ in range(n_tensors):
            name = self.string()
            dims = [self.number("Q") for _ in range(self.number("I"))]
            tensors.append((name, dims, self.number("I"), self.number("Q")))
        start = -(-self.at // 32) * 32
        ends = sorted(offset for _, _, _, offset in tensors) + [len(self.bytes) - start]
        self.tensors = {}
        for name, _, _, offset in tensors:
            data = self.bytes[start + offset : start + ends[ends.index(offset) + 1]]
            self.tensors[name] = hashlib.sha256(data).hexdigest()
        assert len(self.tensors) == n_tensors, "duplicate tensor names"
        del self.bytes

    def number(self, code):
        size = struct.calcsize(code)
        self.at += size
        return struct.unpack(self.order + code, self.bytes[self.at - size : self.at])[0]

    def string(self):
        length = self.number("Q")
        self.at += length
        return self.bytes[self.at - length : self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind != 9:
            return self.number(NUMBERS[kind])
        element, length = self.number("I"), self.number("Q")
        return [self.value(element) for _ in range(length)]


class Key:
    """Sets a key that no other editor sets: in place if the value fits."""

    def __init__(self, i, length):
        self.key, self.value = f"test.key{i}", f"{i}" * length
        self.args = ["edit", "FILE", "--set", f"{self.key}:str={self.value}"]

    def is_done(self, keys, names):
        assert keys.get(self.key) in (None, self.value), self.key
        return self.key in keys


class Rename:
    """Renames a tensor: in place, because the name has the same length."""

    def __init__(self, i, name):
        self.old, self.new = name, name.replace("blk.0", f"xyz.{i}")
        self.args = ["edit", "FILE", "--rename-tensor", f"{self.old}={self.new}"]

    def is_done(self, keys, names):
        assert (self.old in names) != (self.new in names), f"{self.old} and {self.new}"
        return self.new in names


class Drop:
    """Drops a tensor: the pipeline rewrites the file."""

    def __init__(self, i, name):
        self.name = name
        self.args = ["edit", "FILE", "--drop", f"^{name}$", "--set", f"test.drop{i}:u32={i}"]
        self.key = f"test.drop{i}"

    def is_done(self, keys, names):
        assert (self.key in keys) != (self.name in names), self.name
        return self.key in keys


class Repair:
    """Repairs the one defect of the model."""

    args = ["check", "FILE", "--fix", "--in-place"]

    def is_done(self, keys, names):
        return "general.quantization_version" in keys


class Order:
    """Rewrites the file in a byte order."""

    def __init__(self, order):
        self.order = order
        self.args = ["convert-endian", "FILE", order, "--in-place"]

    def is_done(self, keys, names):
        return True


def editors_of_a_round(rng, tensors):
    """Returns two or three editors whose changes do not conflict."""
    names = rng.sample(tensors, 3)
    kinds = ["short", "short", "long", "rename", "drop", "repair", "rewrite", "swap"]
    editors = []
    for i in range(rng.choice([2, 2, 3])):
        kind = rng.choice(kinds)
        if kind in ("repair", "rewrite", "swap"):
            # Once in a round; and a file in the other byte order is not rewritten.
            kinds = [other for other in kinds if other not in ("repair", "rewrite", "swap")]
        if kind in ("swap", "drop"):
            kinds = [other for other in kinds if other not in ("swap", "drop", "rewrite")]
        editors.append(
            {
                "short": lambda: Key(i, rng.randrange(1, 60)),
                "long": lambda: Key(i, rng.randrange(3000, 9000)),
                "rename": lambda: Rename(i, names[i]),
                "drop": lambda: Drop(i, names[i]),
                "repair": Repair,
                "rewrite": lambda: Order("little"),
                "swap": lambda: Order("big"),
            }[kind]()
        )
    return editors


class Round:
    """One file with concurrent editors and readers, and their results."""

    def __init__(self, binary, folder, start, editors, readers, link):
        self.folder, self.editors = folder, editors
        self.file = folder / "m.gguf"
        self.file.write_bytes(start)
        self.before = {path.name for path in folder.iterdir()}
        start_process = lambda args, name: subprocess.Popen(
            [binary, *(str(name) if arg == "FILE" else arg for arg in args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        inspect = ["inspect", "FILE", "--json"]
        names = [self.file, link]
        jobs = [(editor.args, names[i % 2 * (len(editors) > 2)]) for i, editor in enumerate(editors)]
        jobs += [(inspect, names[i % 2]) for i in range(readers)]
        running = [start_process(*job) for job in jobs]
        self.ended = [(process.communicate(), process.returncode) for process in running]

    def check(self, tensors, other_order):
        """Counts the outcomes; fails if an update was lost or the file is wrong."""
        counts = Counter()
        expected = []
        for editor, ((_, stderr), code) in zip(self.editors, self.ended):
            # `check` exits with 1 for a tensor that another editor has dropped.
            if code == 0 or (code == 1 and "check" in editor.args):
                expected.append(editor)
                counts["in place"] += "changed in place" in stderr
                counts["edits"] += 1
            else:
                refused = code == 3 and REFUSED in stderr and ".gguf" in stderr
                assert refused, f"{editor.args}: exit {code}: {stderr}"
                counts["refused"] += 1
        for (stdout, stderr), code in self.ended[len(self.editors) :]:
            assert code == 0, f"a reader: exit {code}: {stderr}"
            listing = json.loads(stdout)
            keys = {key: entry["value"] for key, entry in listing["metadata"].items()}
            names = {tensor["name"] for tensor in listing["tensors"]}
            done = [editor.is_done(keys, names) for editor in self.editors]
            self.check_names(names, done, tensors)
            counts["reads"] += 1
        content = Content(self.file)
        done = [editor.is_done(content.keys, content.tensors) for editor in self.editors]
        for editor, is_done in zip(self.editors, done):
            assert is_done or editor not in expected, f"lost: {editor.args}"
        self.check_names(set(content.tensors), done, tensors)
        swapped = any(getattr(editor, "order", None) == "big" for editor in expected)
        assert content.order == "<>"[swapped], "the byte order"
        renamed = {e.new: e.old for e in self.editors if isinstance(e, Rename)}
        for name, digest in content.tensors.items():
            expected_digest = (other_order if swapped else tensors)[renamed.get(name, name)]
            assert digest == expected_digest, f"the data of {name}"
        left = {path.name for path in self.folder.iterdir()} - self.before
        assert not left, f"other files are left: {left}"
        return counts

    def check_names(self, names, done, tensors):
        expected = set(tensors)
        for editor, is_done in zip(self.editors, done):
            if is_done and isinstance(editor, Rename):
                expected = expected - {editor.old} | {editor.new}
            if is_done and isinstance(editor, Drop):
                expected = expected - {editor.name}
        assert names == expected, f"names: {names ^ expected}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("checkpoint")
    parser.add_argument("rounds", type=int, nargs="?", default=300)
    options = parser.parse_args()
    binary = str(Path(options.gguf).resolve())
    rng = random.Random(7)
    total, failures = Counter(), Counter()
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        folder, links = work / "models", work / "links"
        folder.mkdir()
        links.mkdir()
        link = links / "link.gguf"
        link.symlink_to("../models/m.gguf")
        whole, tight, padded = (work / name for name in ["f16.gguf", "tight.gguf", "padded.gguf"])
        ours(binary, "convert", options.checkpoint, "-o", whole, "--outtype", "F16")
        ours(binary, "quantize", whole, tight, "Q4_0", "--prune-layers", "1,2,3")
        # A defect with one repair.
        without = ["--remove", "general.quantization_version"]
        ours(binary, "edit", tight, *without, "--reserve", "0", "-o", padded)
        tight.write_bytes(padded.read_bytes())
        ours(binary, "edit", padded, "--set", "test.long:str=" + 200 * "x", "--reserve", "64K")
        ours(binary, "convert-endian", tight, "big", "-o", whole, "--force")
        starts = [tight.read_bytes(), padded.read_bytes()]
        tensors, other_order = Content(tight).tensors, Content(whole).tensors
        blocks = [name for name in tensors if name.startswith("blk.0.")]
        start = time.monotonic()
        for i in range(options.rounds):
            editors = editors_of_a_round(rng, blocks)
            done = Round(binary, folder, starts[i % 2], editors, rng.randrange(3), link)
            total["triples" if len(editors) == 3 else "pairs"] += 1
            try:
                total += done.check(tensors, other_order)
            except Exception as error:
                # All rounds run, to count the failures.
                failures["lost" if str(error).startswith("lost") else "broken"] += 1
                if sum(failures.values()) <= 5:
                    commands = [" ".join(editor.args)[:80] for editor in editors]
                    print(f"round {i}: {error!s:.200} {commands}")
                for path in folder.iterdir():
                    path.unlink()
        print(f"{options.rounds} rounds in {time.monotonic() - start:.0f} s: {dict(total)}")
    assert not failures, f"failures: {dict(failures)}"


if __name__ == "__main__":
    main()
