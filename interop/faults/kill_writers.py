"""Kills commands that write, and checks that they leave the old file or the new one.

Usage: python3 interop/faults/kill_writers.py GGUF_BINARY CHECKPOINT_DIR [KILLS]

Starts each writing command again and again and kills it (SIGKILL) after a delay that is spread over its usual run time; an edit in
place also while it overwrites the header. The file must then be identical to the old or the new file; or readers must report an
interrupted edit, and the command that undoes or finishes the edit must restore one of the two. Readers must leave every file as it
is, with its modification time. The script also constructs the states in which a crash of the machine could leave an edit in place,
and recovers them.
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

# Padding of a header that takes some milliseconds to overwrite.
RESERVE = 16 << 20


def ours(binary, *args):
    """Runs the binary and returns its standard output."""
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"gguf {args}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


def reads(binary, model):
    """Returns whether readers open the model; if not, they must report an interrupted edit. They must not change files."""
    before = state(model.parent)
    inspect = subprocess.run([binary, "inspect", model], capture_output=True, text=True)
    check = subprocess.run([binary, "check", model, "--json"], capture_output=True, text=True)
    assert state(model.parent) == before, "a reader changed a file"
    if inspect.returncode == 0:
        return True
    assert inspect.returncode == 1 and "an edit of" in inspect.stderr, inspect.stderr
    assert check.returncode == 1 and '"edit-interrupted"' in check.stdout, check.stdout
    return False


def state(folder):
    """Returns path, inode, modification time and digest of all files in a folder."""
    files = sorted(folder.iterdir())
    return [(path, path.stat().st_ino, path.stat().st_mtime_ns, digest(path)) for path in files]


def digest(path):
    return hashlib.sha256(path.read_bytes()).digest()


def content(folder):
    """Returns the visible files of a folder, by name."""
    hidden = lambda path: path.name.startswith(".")
    return {path.name: path.read_bytes() for path in folder.iterdir() if not hidden(path)}


def fill(folder, files):
    """Replaces all files of the folder with these."""
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def journal(model):
    return model.with_name(f".{model.name}.journal")


def encoded_journal(model, old_header, new_header):
    """Encodes the journal of `crates/store/src/edit/journal.rs` for the present file."""
    sha256 = lambda data: hashlib.sha256(data).digest()
    metadata = model.stat()
    fields = b"GGUFEDIT" + struct.pack(
        "<IQQQQ", 1, metadata.st_ino, metadata.st_size, metadata.st_mtime_ns, len(old_header)
    )
    fields += sha256(old_header) + sha256(new_header)
    return fields + sha256(fields) + old_header + new_header


class Writer:
    """A command that turns the files `old` of a folder into the files `new`."""

    def __init__(self, binary, folder, name, old, args):
        self.binary, self.folder, self.name, self.old, self.args = binary, folder, name, old, args
        durations = []
        for _ in range(3):
            fill(folder, old)
            start = time.monotonic()
            ours(binary, *args)
            durations.append(time.monotonic() - start)
        self.usual = sorted(durations)[1]
        self.new = content(folder)

    def kill(self, delay, overwriting=False):
        """Starts the command, kills it after `delay` seconds, and counts the outcome.

        With `overwriting`, the delay begins with the first change of the file itself.
        """
        fill(self.folder, self.old)
        target = self.folder / min(self.old)
        changed = target.stat().st_mtime_ns
        process = subprocess.Popen(
            [self.binary, *map(str, self.args)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while overwriting and process.poll() is None and target.stat().st_mtime_ns == changed:
            pass
        time.sleep(delay)
        finished = process.poll() is not None
        process.kill()
        process.wait()
        outcome = Counter({"finished" if finished else "killed": 1})
        outcome["part files"] = len(list(self.folder.glob(".*part")))
        names = sorted(self.old | self.new)
        outcome["journals"] = sum(journal(self.folder / name).exists() for name in names)
        if len(names) == 1 and not reads(self.binary, self.folder / names[0]):
            recovery = random.choice(["undo", "finish"])
            ours(self.binary, "edit", self.folder / names[0], "--recover", recovery)
            outcome[recovery] += 1
            assert content(self.folder) == (self.old if recovery == "undo" else self.new), self.name
            assert not journal(self.folder / names[0]).exists(), self.name
        after = content(self.folder)
        for name in names:
            states = [self.old.get(name), self.new.get(name)]
            assert after.get(name) in states, f"{self.name}: {name} is neither the old nor the new file"
        self.clean_up()
        if after == self.old:
            outcome["old"] = 1
        elif after == self.new:
            outcome["new"] = 1
        else:
            # Several files cannot be renamed atomically together; each is complete.
            assert len(names) > 1
            outcome["some old, some new"] = 1
        return outcome

    def clean_up(self):
        """Checks that the next writer removes the unfinished files of a killed one."""
        hidden = {path.name: path.read_bytes() for path in self.folder.glob(".*")}
        if hidden:
            fill(self.folder, self.old | hidden)
            ours(self.binary, *self.args)
            left = [path.name for path in self.folder.glob(".*")]
            assert not left, f"{self.name}: {left} were not removed"


def writers(binary, checkpoint, work):
    """Yields all commands that write, each with an existing file to replace."""
    folder = work / "target"
    folder.mkdir()
    model, padded = work / "model.gguf", work / "padded.gguf"
    ours(binary, "convert", checkpoint, "-o", model, "--outtype", "F16")
    padded.write_bytes(model.read_bytes())
    ours(binary, "edit", padded, "--set", "general.url=somewhere", "--reserve", f"{RESERVE >> 20}M")
    assert padded.stat().st_size > model.stat().st_size + RESERVE // 2
    renamed = work / "renamed.gguf"
    renamed.write_bytes(model.read_bytes())
    ours(binary, "edit", renamed, "--set", "general.name=Another model")
    shards, old_shards = work / "shards", work / "old-shards"
    for source, into in [(model, shards), (renamed, old_shards)]:
        into.mkdir()
        ours(binary, "split", source, into / "m", "--split-max-tensors", "8")
    target = folder / "m.gguf"

    def writer(name, old, *args):
        return Writer(binary, folder, name, old, args)

    at_target = lambda path: {target.name: path.read_bytes()}
    first_shard = sorted(shards.iterdir())[0]
    yield writer("edit in place", at_target(padded), "edit", target, "--set", "general.name=New")
    yield writer(
        "edit, rebuilding", at_target(model), "edit", target, "--set", "general.url=somewhere"
    )
    yield writer("quantize", at_target(model), "quantize", "--force", model, target, "Q4_0")
    yield writer("convert", at_target(renamed), "convert", "--force", checkpoint, "-o", target)
    yield writer("merge", at_target(renamed), "merge", "--force", first_shard, target)
    yield writer(
        "split", content(old_shards), "split", "--force", model, folder / "m", "--split-max-tensors", "8"
    )
    yield writer(
        "convert-endian", at_target(model), "convert-endian", target, "big", "--in-place"
    )


def data_len(binary, model):
    """Returns the number of bytes of the data section, with padding to the alignment."""
    tensors = json.loads(ours(binary, "inspect", model, "--json"))["tensors"]
    return max(-(-(tensor["offset"] + tensor["bytes"]) // 32) * 32 for tensor in tensors)


def crash_points(binary, edit):
    """Recovers every kind of state between the journal's first byte and its removal, and returns their number."""
    ((name, old),), ((_, new),) = edit.old.items(), edit.new.items()
    assert len(old) == len(new), "the edit was not in place"
    target = edit.folder / name
    fill(edit.folder, {name: old})
    end = len(old) - data_len(binary, target)
    changed = next(i for i in range(end) if old[i] != new[i])
    last = next(i for i in range(end, 0, -1) if old[i - 1] != new[i - 1])
    lengths = [0, 1, 8, changed, changed + 1, changed + 5, last - 1, last, end // 2, end]

    def crash(written):
        """Writes the state of a crash after so many bytes of the new header, and returns the journal."""
        fill(edit.folder, {name: old})
        whole = encoded_journal(target, old[:end], new[:end])
        with target.open("r+b") as file:
            file.write(new[:written])
        journal(target).write_bytes(whole)
        return whole

    for written in lengths:
        for recovery, expected in [("undo", old), ("finish", new)]:
            crash(written)
            present = target.read_bytes()
            assert reads(binary, target) == (present in (old, new)), f"{written} bytes"
            ours(binary, "edit", target, "--recover", recovery)
            assert target.read_bytes() == expected, f"{written} bytes, {recovery}"
            assert not journal(target).exists()
    # Readers and writers ignore an incomplete journal.
    whole = crash(0)
    for length in [0, 1, 8, 100, len(whole) // 2, len(whole) - 1]:
        journal(target).write_bytes(whole[:length])
        assert reads(binary, target) and target.read_bytes() == old
    ours(binary, *edit.args)
    assert target.read_bytes() == new and not journal(target).exists()
    # The next recovery completes a killed one.
    for i in range(10):
        crash(changed + 5)
        command = [binary, "edit", target, "--recover", "undo"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(edit.usual * i / 10)
        process.kill()
        process.wait()
        reads(binary, target)
        ours(*command)
        assert target.read_bytes() == old, "after a killed recovery"
    return 2 * len(lengths) + 17


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("checkpoint")
    parser.add_argument("kills", type=int, nargs="?", default=210)
    options = parser.parse_args()
    binary = str(Path(options.gguf).resolve())
    random.seed(3)
    total = Counter()
    with tempfile.TemporaryDirectory() as work:
        all_writers = list(writers(binary, Path(options.checkpoint).resolve(), Path(work)))
        edit = all_writers[0]
        rounds = [(writer, writer.name, writer.usual, False) for writer in all_writers]
        rounds.append((edit, "edit in place, overwriting", 0.0005, True))
        each = -(-options.kills // len(rounds))
        for writer, name, span, overwriting in rounds:
            counts = Counter()
            tries = 0
            while counts["killed"] < each:
                # One kill in each slice of the run time, so that all phases are tested.
                place = (tries % each + random.random()) / each
                counts += writer.kill(place * span, overwriting)
                tries += 1
                assert tries < 20 * each, f"{name}: ends before it can be killed"
            total += counts
            print(f"{name} (within {1000 * span:.0f} ms): {dict(counts)}", flush=True)
        print(f"crash points recovered: {crash_points(binary, edit)}")
    print(f"killed {total['killed']} times: {dict(total)}")


if __name__ == "__main__":
    main()
