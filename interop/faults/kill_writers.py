"""Writers that are killed leave the old file or the new one.

Usage: python kill_writers.py GGUF_BINARY CHECKPOINT_DIR [KILLS]

Each writing command is started over and over and killed (SIGKILL) after a delay that is spread over
its usual run time; an edit in place also within the moments in which it overwrites the header. The
file must then be identical to the one before or the one after; or readers must say that an edit was
interrupted, and it must be one of the two after the command that undoes the edit, or the one that
finishes it. Readers must leave every file as it was, time of change included. Further, the states in
which a crash of the machine could leave an edit in place are built by hand and must be recovered.
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

# Room for a header that takes a while to overwrite.
RESERVE = 16 << 20


def ours(binary, *args):
    """Runs our binary to its end and returns what it prints."""
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"gguf {args}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


def reads(binary, model):
    """Whether readers open the model; if not, they must say that an edit was interrupted. They must
    leave all files in the folder as they are."""
    before = state(model.parent)
    look = subprocess.run([binary, "inspect", model], capture_output=True, text=True)
    check = subprocess.run([binary, "check", model, "--json"], capture_output=True, text=True)
    assert state(model.parent) == before, "a reader changed something"
    if look.returncode == 0:
        return True
    assert look.returncode == 1 and "an edit of" in look.stderr, look.stderr
    assert check.returncode == 1 and '"edit-interrupted"' in check.stdout, check.stdout
    return False


def state(folder):
    """All that a writer could change in a folder."""
    files = sorted(folder.iterdir())
    return [(path, path.stat().st_ino, path.stat().st_mtime_ns, digest(path)) for path in files]


def digest(path):
    return hashlib.sha256(path.read_bytes()).digest()


def content(folder):
    """The files of a folder that a reader looks at, by name."""
    hidden = lambda path: path.name.startswith(".")
    return {path.name: path.read_bytes() for path in folder.iterdir() if not hidden(path)}


def fill(folder, files):
    """Makes these the only files of the folder."""
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def journal(model):
    return model.with_name(f".{model.name}.journal")


def encoded_journal(model, old_header, new_header):
    """As `crates/store/src/edit/journal.rs` draws it, for the file that is there now."""
    sha256 = lambda data: hashlib.sha256(data).digest()
    about = model.stat()
    fields = b"GGUFEDIT" + struct.pack(
        "<IQQQQ", 1, about.st_ino, about.st_size, about.st_mtime_ns, len(old_header)
    )
    fields += sha256(old_header) + sha256(new_header)
    return fields + sha256(fields) + old_header + new_header


class Writer:
    """A command that turns the files `old` of a folder into `new` ones."""

    def __init__(self, binary, folder, name, old, args):
        self.binary, self.folder, self.name, self.old, self.args = binary, folder, name, old, args
        took = []
        for _ in range(3):
            fill(folder, old)
            start = time.monotonic()
            ours(binary, *args)
            took.append(time.monotonic() - start)
        self.usual = sorted(took)[1]
        self.new = content(folder)

    def kill(self, delay, overwriting=False):
        """Starts it, kills it after `delay` seconds, and says what was left.

        With `overwriting`, the seconds count from the first byte that changes in the file itself.
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
            how = random.choice(["undo", "finish"])
            ours(self.binary, "edit", self.folder / names[0], "--recover", how)
            outcome[how] += 1
            assert content(self.folder) == (self.old if how == "undo" else self.new), self.name
            assert not journal(self.folder / names[0]).exists(), self.name
        after = content(self.folder)
        for name in names:
            states = [self.old.get(name), self.new.get(name)]
            assert after.get(name) in states, f"{self.name}: {name} is neither old nor new"
        self.clean_up()
        if after == self.old:
            outcome["old"] = 1
        elif after == self.new:
            outcome["new"] = 1
        else:
            # Several files cannot appear in one instant; each is whole.
            assert len(names) > 1
            outcome["some old, some new"] = 1
        return outcome

    def clean_up(self):
        """The next writer removes what a killed one left beside the target."""
        hidden = {path.name: path.read_bytes() for path in self.folder.glob(".*")}
        if hidden:
            fill(self.folder, self.old | hidden)
            ours(self.binary, *self.args)
            stay = [path.name for path in self.folder.glob(".*")]
            assert not stay, f"{self.name}: {stay} stay"


def writers(binary, checkpoint, work):
    """All commands that write, over files that exist already."""
    folder = work / "target"
    folder.mkdir()
    model, roomy = work / "model.gguf", work / "roomy.gguf"
    ours(binary, "convert", checkpoint, "-o", model, "--outtype", "F16")
    roomy.write_bytes(model.read_bytes())
    ours(binary, "edit", roomy, "--set", "general.url=somewhere", "--reserve", f"{RESERVE >> 20}M")
    assert roomy.stat().st_size > model.stat().st_size + RESERVE // 2
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
    yield writer("edit in place", at_target(roomy), "edit", target, "--set", "general.name=New")
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
    """Bytes of the data section, which ends on a multiple of the alignment."""
    tensors = json.loads(ours(binary, "inspect", model, "--json"))["tensors"]
    return max(-(-(tensor["offset"] + tensor["bytes"]) // 32) * 32 for tensor in tensors)


def crash_points(binary, edit):
    """Every kind of state between the journal's first byte and its removal leads back, or on."""
    ((name, old),), ((_, new),) = edit.old.items(), edit.new.items()
    assert len(old) == len(new), "the edit was not done in place"
    target = edit.folder / name
    fill(edit.folder, {name: old})
    end = len(old) - data_len(binary, target)
    changed = next(i for i in range(end) if old[i] != new[i])
    last = next(i for i in range(end, 0, -1) if old[i - 1] != new[i - 1])
    cuts = [0, 1, 8, changed, changed + 1, changed + 5, last - 1, last, end // 2, end]

    def crashed(cut):
        """As if the machine had stopped after so many bytes of the new header."""
        fill(edit.folder, {name: old})
        whole = encoded_journal(target, old[:end], new[:end])
        with target.open("r+b") as file:
            file.write(new[:cut])
        journal(target).write_bytes(whole)
        return whole

    for cut in cuts:
        for how, expected in [("undo", old), ("finish", new)]:
            crashed(cut)
            present = target.read_bytes()
            assert reads(binary, target) == (present in (old, new)), f"cut at {cut}"
            ours(binary, "edit", target, "--recover", how)
            assert target.read_bytes() == expected, f"cut at {cut}, {how}"
            assert not journal(target).exists()
    # A journal in the making is nothing to act on, and in nobody's way.
    whole = crashed(0)
    for length in [0, 1, 8, 100, len(whole) // 2, len(whole) - 1]:
        journal(target).write_bytes(whole[:length])
        assert reads(binary, target) and target.read_bytes() == old
    ours(binary, *edit.args)
    assert target.read_bytes() == new and not journal(target).exists()
    # A recovery that is killed is done by the next one.
    for i in range(10):
        crashed(changed + 5)
        recovery = [binary, "edit", target, "--recover", "undo"]
        process = subprocess.Popen(recovery, stderr=subprocess.DEVNULL)
        time.sleep(edit.usual * i / 10)
        process.kill()
        process.wait()
        reads(binary, target)
        ours(*recovery)
        assert target.read_bytes() == old, "after a killed recovery"
    return 2 * len(cuts) + 17


def main(binary, checkpoint, kills=210):
    binary = str(Path(binary).resolve())
    random.seed(3)
    total = Counter()
    with tempfile.TemporaryDirectory() as work:
        all_writers = list(writers(binary, Path(checkpoint).resolve(), Path(work)))
        edit = all_writers[0]
        rounds = [(writer, writer.name, writer.usual, False) for writer in all_writers]
        rounds.append((edit, "edit in place, overwriting", 0.0005, True))
        each = -(-int(kills) // len(rounds))
        for writer, name, span, overwriting in rounds:
            tally = Counter()
            tries = 0
            while tally["killed"] < each:
                # One in each slice of the time, so that no phase is left out.
                place = (tries % each + random.random()) / each
                tally += writer.kill(place * span, overwriting)
                tries += 1
                assert tries < 20 * each, f"{name}: always done before it can be killed"
            total += tally
            print(f"{name} (within {1000 * span:.0f} ms): {dict(tally)}", flush=True)
        print(f"crash points recovered: {crash_points(binary, edit)}")
    print(f"killed {total['killed']} times: {dict(total)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
