"""Writers that are killed leave the old file or the new one.

Usage: python kill_writers.py GGUF_BINARY CHECKPOINT_DIR [KILLS]

Each writing command is started over and over and killed (SIGKILL) after a delay that is spread over
its usual run time; an edit in place also within the moments in which it overwrites the header. The
file is then opened again, which undoes an edit in place that was interrupted, and must be identical
to the one before or the one after. Further, the states in which a crash of the machine could leave
an edit in place are built by hand and must be undone.
"""

import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path

# Room for a header that takes a while to overwrite.
RESERVE = 16 << 20


def ours(binary, *args):
    """Runs our binary to its end."""
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"gguf {args}: exit {done.returncode}\n{done.stderr}"


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


def encoded_journal(old_header, length):
    """As `crates/gguf/src/edit/journal.rs` draws it."""
    return b"GGUFJRNL" + struct.pack("<QI", length, zlib.crc32(old_header)) + old_header


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

    def kill(self, delay, once=None):
        """Starts it, kills it after `delay` seconds, and says what was left.

        The seconds count from the moment at which the file `once` exists, if one is given.
        """
        fill(self.folder, self.old)
        process = subprocess.Popen(
            [self.binary, *map(str, self.args)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while once and process.poll() is None and not once.exists():
            pass
        time.sleep(delay)
        finished = process.poll() is not None
        process.kill()
        process.wait()
        outcome = Counter({"finished" if finished else "killed": 1})
        outcome["part files"] = len(list(self.folder.glob(".*part")))
        names = sorted(self.old | self.new)
        outcome["journals"] = sum(journal(self.folder / name).exists() for name in names)
        before = content(self.folder)
        for name in before:
            # Of a set of shards in between, reading one may refuse the others: each is looked at.
            subprocess.run(
                [self.binary, "check", self.folder / name], capture_output=True, check=False
            )
        after = content(self.folder)
        for name in names:
            states = [self.old.get(name), self.new.get(name)]
            assert after.get(name) in states, f"{self.name}: {name} is neither old nor new"
            assert not journal(self.folder / name).exists(), f"{self.name}: {name} not recovered"
        outcome["undone"] = before != after
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
        parts = {path.name: path.read_bytes() for path in self.folder.glob(".*part")}
        parts = {name: data for name, data in parts.items() if ".journal." not in name}
        if parts:
            fill(self.folder, self.old | parts)
            ours(self.binary, *self.args)
            assert not list(self.folder.glob(".*part")), f"{self.name}: {list(parts)} stay"


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


def crash_points(binary, edit):
    """Every kind of state between the journal's first byte and its removal leads back."""
    ((name, old),), ((_, new),) = edit.old.items(), edit.new.items()
    assert len(old) == len(new), "the edit was not done in place"
    target = edit.folder / name
    end = next(i for i in range(len(old), 0, -4096) if old[:i] != new[:i])
    changed = next(i for i in range(end) if old[i] != new[i])
    cuts = [0, 1, 8, changed, changed + 1, changed + 5, end // 2, end]
    whole = encoded_journal(old[:end], len(old))
    for cut in cuts:
        fill(edit.folder, {name: new[:cut] + old[cut:]})
        journal(target).write_bytes(whole)
        ours(binary, "inspect", target)
        assert target.read_bytes() == old, f"cut at {cut}"
        assert not journal(target).exists()
    # Before its name is given, a journal in the making is nothing to act on.
    fill(edit.folder, {name: old, f"{journal(target).name}.part": whole[: len(whole) // 2]})
    ours(binary, "inspect", target)
    assert target.read_bytes() == old
    # A recovery that is killed is done by the next one.
    for i in range(10):
        fill(edit.folder, {name: new[: end // 2] + old[end // 2 :]})
        journal(target).write_bytes(whole)
        process = subprocess.Popen([binary, "inspect", target], stdout=subprocess.DEVNULL)
        time.sleep(edit.usual * i / 10)
        process.kill()
        process.wait()
        ours(binary, "inspect", target)
        assert target.read_bytes() == old, "after a killed recovery"
    return len(cuts) + 11


def main(binary, checkpoint, kills=210):
    binary = str(Path(binary).resolve())
    rng = random.Random(3)
    total = Counter()
    with tempfile.TemporaryDirectory() as work:
        all_writers = list(writers(binary, Path(checkpoint).resolve(), Path(work)))
        each = -(-int(kills) // len(all_writers))
        edit = all_writers[0]
        overwriting = journal(edit.folder / "m.gguf")
        rounds = [(writer, writer.name, writer.usual, None) for writer in all_writers]
        rounds.append((edit, "edit in place, overwriting", edit.usual / 10, overwriting))
        each = -(-int(kills) // len(rounds))
        for writer, name, span, once in rounds:
            tally = Counter()
            tries = 0
            while tally["killed"] < each:
                # One in each slice of the time, so that no phase is left out.
                place = (tries % each + rng.random()) / each
                tally += writer.kill(place * span, once)
                tries += 1
                assert tries < 20 * each, f"{name}: always done before it can be killed"
            total += tally
            print(f"{name} (within {1000 * span:.0f} ms): {dict(tally)}", flush=True)
        print(f"crash points undone: {crash_points(binary, edit)}")
    print(f"killed {total['killed']} times: {dict(total)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
