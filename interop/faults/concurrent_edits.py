"""Editors of one file at the same time take turns, and readers see a whole file.

Usage: python concurrent_edits.py GGUF_BINARY CHECKPOINT_DIR [ROUNDS]

In each round two or three editors, of every kind there is, and up to two readers are started at once
on one small model; every other round begins with a model that has room for edits in place, some are
reached through a link. Afterwards an editor has either done what it was asked for, all of it still
there at the end, or refused with a message that names the file; every reader has seen a file in
which each edit is done or not done; tensors have the names and the data that they should have, by a
reader of our own in this script; and nothing else is left in the folder.
"""

import hashlib
import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REFUSED = "another process is changing it"
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def ours(binary, *args):
    """Runs our binary to its end and returns what it prints."""
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"gguf {args}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


class Content:
    """Byte order, keys, and the digest of each tensor's bytes, by name."""

    def __init__(self, path):
        self.bytes, self.at = path.read_bytes(), 0
        assert self.bytes[:4] == b"GGUF", "no GGUF"
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
        assert len(self.tensors) == n_tensors, "a name twice"
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
        of, length = self.number("I"), self.number("Q")
        return [self.value(of) for _ in range(length)]


class Key:
    """Sets a key of its own: in place where its value fits."""

    def __init__(self, i, length):
        self.key, self.value = f"test.key{i}", f"{i}" * length
        self.args = ["edit", "FILE", "--set", f"{self.key}:str={self.value}"]

    def is_done(self, keys, names):
        assert keys.get(self.key) in (None, self.value), self.key
        return self.key in keys


class Rename:
    """Gives a tensor another name: in place, as it is as long."""

    def __init__(self, i, name):
        self.old, self.new = name, name.replace("blk.0", f"xyz.{i}")
        self.args = ["edit", "FILE", "--rename-tensor", f"{self.old}={self.new}"]

    def is_done(self, keys, names):
        assert (self.old in names) != (self.new in names), f"{self.old} and {self.new}"
        return self.new in names


class Drop:
    """Leaves out a tensor: a whole new file, by the pipeline."""

    def __init__(self, i, name):
        self.name = name
        self.args = ["edit", "FILE", "--drop", f"^{name}$", "--set", f"test.drop{i}:u32={i}"]
        self.key = f"test.drop{i}"

    def is_done(self, keys, names):
        assert (self.key in keys) != (self.name in names), self.name
        return self.key in keys


class Repair:
    """Repairs the one fault that the model has."""

    args = ["check", "FILE", "--fix", "--in-place"]

    def is_done(self, keys, names):
        return "general.quantization_version" in keys


class Order:
    """Writes the file anew in one byte order."""

    def __init__(self, order):
        self.order = order
        self.args = ["convert-endian", "FILE", order, "--in-place"]

    def is_done(self, keys, names):
        return True


def editors_of_a_round(rng, tensors):
    """Two or three that do not undo each other's work."""
    names = rng.sample(tensors, 3)
    kinds = ["short", "short", "long", "rename", "drop", "repair", "rewrite", "turn"]
    made = []
    for i in range(rng.choice([2, 2, 3])):
        kind = rng.choice(kinds)
        if kind in ("repair", "rewrite", "turn"):
            # Once in a round; and of another byte order than the machine's, nothing is rewritten.
            kinds = [other for other in kinds if other not in ("repair", "rewrite", "turn")]
        if kind in ("turn", "drop"):
            kinds = [other for other in kinds if other not in ("turn", "drop", "rewrite")]
        made.append(
            {
                "short": lambda: Key(i, rng.randrange(1, 60)),
                "long": lambda: Key(i, rng.randrange(3000, 9000)),
                "rename": lambda: Rename(i, names[i]),
                "drop": lambda: Drop(i, names[i]),
                "repair": Repair,
                "rewrite": lambda: Order("little"),
                "turn": lambda: Order("big"),
            }[kind]()
        )
    return made


class Round:
    """One file, some editors and readers, and what became of them."""

    def __init__(self, binary, folder, start, editors, readers, link):
        self.folder, self.editors = folder, editors
        self.file = folder / "m.gguf"
        self.file.write_bytes(start)
        self.before = {path.name for path in folder.iterdir()}
        begin = lambda args, name: subprocess.Popen(
            [binary, *(str(name) if arg == "FILE" else arg for arg in args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        look = ["inspect", "FILE", "--json"]
        names = [self.file, link]
        jobs = [(editor.args, names[i % 2 * (len(editors) > 2)]) for i, editor in enumerate(editors)]
        jobs += [(look, names[i % 2]) for i in range(readers)]
        running = [begin(*job) for job in jobs]
        self.ended = [(process.communicate(), process.returncode) for process in running]

    def judge(self, tensors, other_order):
        """What happened, counted; fails if an update was lost or anything is wrong."""
        seen = Counter()
        expected = []
        for editor, ((_, stderr), code) in zip(self.editors, self.ended):
            # What another editor has dropped is an error that `check` cannot repair.
            if code == 0 or (code == 1 and "check" in editor.args):
                expected.append(editor)
                seen["in place"] += "changed in place" in stderr
                seen["edits"] += 1
            else:
                refused = code == 3 and REFUSED in stderr and ".gguf" in stderr
                assert refused, f"{editor.args}: exit {code}: {stderr}"
                seen["refused"] += 1
        for (stdout, stderr), code in self.ended[len(self.editors) :]:
            assert code == 0, f"a reader: exit {code}: {stderr}"
            listing = json.loads(stdout)
            keys = {key: entry["value"] for key, entry in listing["metadata"].items()}
            names = {tensor["name"] for tensor in listing["tensors"]}
            done = [editor.is_done(keys, names) for editor in self.editors]
            self.names_are_right(names, done, tensors)
            seen["reads"] += 1
        content = Content(self.file)
        done = [editor.is_done(content.keys, content.tensors) for editor in self.editors]
        for editor, is_done in zip(self.editors, done):
            assert is_done or editor not in expected, f"lost: {editor.args}"
        self.names_are_right(set(content.tensors), done, tensors)
        turned = any(getattr(editor, "order", None) == "big" for editor in expected)
        assert content.order == "<>"[turned], "the byte order"
        renamed = {e.new: e.old for e in self.editors if isinstance(e, Rename)}
        for name, digest in content.tensors.items():
            right = (other_order if turned else tensors)[renamed.get(name, name)]
            assert digest == right, f"the data of {name}"
        left = {path.name for path in self.folder.iterdir()} - self.before
        assert not left, f"left behind: {left}"
        return seen

    def names_are_right(self, names, done, tensors):
        expected = set(tensors)
        for editor, is_done in zip(self.editors, done):
            if is_done and isinstance(editor, Rename):
                expected = expected - {editor.old} | {editor.new}
            if is_done and isinstance(editor, Drop):
                expected = expected - {editor.name}
        assert names == expected, f"names: {names ^ expected}"


def main(binary, checkpoint, rounds="300"):
    binary = str(Path(binary).resolve())
    rng = random.Random(7)
    total, faults = Counter(), Counter()
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        folder, links = work / "models", work / "links"
        folder.mkdir()
        links.mkdir()
        link = links / "link.gguf"
        link.symlink_to("../models/m.gguf")
        whole, tight, roomy = (work / name for name in ["f16.gguf", "tight.gguf", "roomy.gguf"])
        ours(binary, "convert", checkpoint, "-o", whole, "--outtype", "F16")
        ours(binary, "quantize", whole, tight, "Q4_0", "--prune-layers", "1,2,3")
        # A fault that has one right answer.
        without = ["--remove", "general.quantization_version"]
        ours(binary, "edit", tight, *without, "--reserve", "0", "-o", roomy)
        tight.write_bytes(roomy.read_bytes())
        ours(binary, "edit", roomy, "--set", "test.long:str=" + 200 * "x", "--reserve", "64K")
        ours(binary, "convert-endian", tight, "big", "-o", whole, "--force")
        starts = [tight.read_bytes(), roomy.read_bytes()]
        tensors, other_order = Content(tight).tensors, Content(whole).tensors
        blocks = [name for name in tensors if name.startswith("blk.0.")]
        start = time.monotonic()
        for i in range(int(rounds)):
            editors = editors_of_a_round(rng, blocks)
            done = Round(binary, folder, starts[i % 2], editors, rng.randrange(3), link)
            total["triples" if len(editors) == 3 else "pairs"] += 1
            try:
                total += done.judge(tensors, other_order)
            except Exception as fault:
                # Counted, not the end: how often it happens is worth knowing.
                faults["lost" if str(fault).startswith("lost") else "broken"] += 1
                if sum(faults.values()) <= 5:
                    asked = [" ".join(editor.args)[:80] for editor in editors]
                    print(f"round {i}: {fault!s:.200} {asked}")
                for path in folder.iterdir():
                    path.unlink()
        print(f"{rounds} rounds in {time.monotonic() - start:.0f} s: {dict(total)}")
    assert not faults, f"faults: {dict(faults)}"


if __name__ == "__main__":
    main(*sys.argv[1:])
