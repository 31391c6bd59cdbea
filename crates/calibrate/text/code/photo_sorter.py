#!/usr/bin/env python3
"""Sort camera files into YEAR/YEAR-MONTH folders and weed out exact duplicates.

    photo_sorter.py plan  ~/Incoming ~/Pictures          # show what would happen
    photo_sorter.py run   ~/Incoming ~/Pictures --copy   # do it, keep originals
    photo_sorter.py undo  ~/Pictures                     # take back the last run

Nothing is ever overwritten or deleted. Duplicates stay where they are and are
reported; moves are written to a journal before they are made, so an interrupted
run can be undone as well as a finished one.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import struct
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".heic", ".dng", ".cr3", ".nef", ".arw"}
VIDEO_SUFFIXES = {".mp4", ".mov", ".avi"}
SIDECAR_SUFFIXES = {".xmp", ".aae", ".thm"}
JOURNAL = ".photo_sorter.journal"

EXIT_OK, EXIT_PARTIAL, EXIT_USAGE = 0, 1, 2


class Action(Enum):
    MOVE = "move"
    COPY = "copy"
    DUPLICATE = "dup"
    UNDATED = "undated"


@dataclass(frozen=True)
class Step:
    action: Action
    source: Path
    target: Path | None = None
    detail: str = ""

    def describe(self, base: Path) -> str:
        arrow = f" -> {self.target.relative_to(base)}" if self.target else ""
        suffix = f"  ({self.detail})" if self.detail else ""
        return f"{self.action.value:>8}  {self.source.name}{arrow}{suffix}"


# ------------------------------------------------------------------ dates

NAME_DATE = re.compile(
    r"(?<!\d)(?P<y>(?:19|20)\d\d)[-_.]?(?P<m>0[1-9]|1[0-2])[-_.]?(?P<d>0[1-9]|[12]\d|3[01])"
    r"(?:[-_ T.]?(?P<H>[01]\d|2[0-3])[-_.:]?(?P<M>[0-5]\d)[-_.:]?(?P<S>[0-5]\d))?"
)


def date_from_name(name: str) -> datetime | None:
    match = NAME_DATE.search(name)
    if match is None:
        return None
    parts = {key: int(value or 0) for key, value in match.groupdict().items()}
    with suppress(ValueError):  # 31 February and friends
        return datetime(parts["y"], parts["m"], parts["d"], parts["H"], parts["M"], parts["S"])
    return None


def date_from_exif(path: Path) -> datetime | None:
    """Read DateTimeOriginal from a JPEG file without any imaging library."""
    with path.open("rb") as file:
        if file.read(2) != b"\xff\xd8":
            return None
        while (head := file.read(4)) and len(head) == 4:
            marker, length = struct.unpack(">HH", head)
            if marker == 0xFFDA or marker < 0xFFC0:  # image data begins
                return None
            payload = file.read(length - 2)
            if marker == 0xFFE1 and payload.startswith(b"Exif\0\0"):
                with suppress(struct.error, ValueError, UnicodeDecodeError):
                    return _walk_tiff(payload[6:])
                return None
    return None


def _walk_tiff(tiff: bytes) -> datetime | None:
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return None

    def entries(offset):
        (count,) = struct.unpack_from(order + "H", tiff, offset)
        for i in range(count):
            tag, kind, n, value = struct.unpack_from(order + "HHII", tiff, offset + 2 + 12 * i)
            yield tag, (kind, n, value)

    (first,) = struct.unpack_from(order + "I", tiff, 4)
    root = dict(entries(first))
    fields = dict(root)
    if 0x8769 in root:  # pointer to the Exif directory
        fields |= dict(entries(root[0x8769][2]))

    # Prefer the moment of exposure, then of digitization, then of the last edit.
    for tag in (0x9003, 0x9004, 0x0132):
        if tag in fields:
            _, length, offset = fields[tag]
            text = tiff[offset : offset + length].rstrip(b"\0 ").decode("ascii")
            with suppress(ValueError):
                return datetime.strptime(text, "%Y:%m:%d %H:%M:%S")
    return None


def taken_at(path: Path, trust_mtime: bool) -> tuple[datetime | None, str]:
    if path.suffix.lower() in {".jpg", ".jpeg"} and (stamp := date_from_exif(path)):
        return stamp, ""
    if stamp := date_from_name(path.stem):
        return stamp, "date from name"
    if trust_mtime:
        return datetime.fromtimestamp(path.stat().st_mtime), "date from file system"
    return None, "no date found"


# ------------------------------------------------------------- duplicates


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


class DuplicateIndex:
    """Finds files with equal content, hashing only those of equal size."""

    def __init__(self) -> None:
        self._by_size: dict[int, list[Path]] = defaultdict(list)
        self._digests: dict[Path, str] = {}

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = digest(path)
        return self._digests[path]

    def find(self, path: Path) -> Path | None:
        same_size = self._by_size.get(path.stat().st_size, ())
        return next((p for p in same_size if self._digest(p) == self._digest(path)), None)

    def add(self, path: Path) -> None:
        self._by_size[path.stat().st_size].append(path)


# --------------------------------------------------------------- planning


def media_files(folder: Path):
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if path.suffix.lower() in IMAGE_SUFFIXES | VIDEO_SUFFIXES and not path.is_symlink():
                yield path


def sidecars(path: Path):
    """Files such as IMG_1.xmp or IMG_1.jpg.xmp that must travel with IMG_1.jpg."""
    for suffix in SIDECAR_SUFFIXES:
        for variant in (suffix, suffix.upper()):
            for candidate in (path.with_suffix(variant), path.with_name(path.name + variant)):
                if candidate.is_file():
                    yield candidate


def free_name(target: Path, taken: set[Path]) -> Path:
    candidate, number = target, 1
    while candidate in taken or candidate.exists():
        number += 1
        candidate = target.with_stem(f"{target.stem}_{number}")
    taken.add(candidate)
    return candidate


def make_plan(args: argparse.Namespace) -> list[Step]:
    index, taken, plan = DuplicateIndex(), set(), []
    for existing in media_files(args.library):
        index.add(existing)

    action = Action.COPY if getattr(args, "copy", False) else Action.MOVE
    for path in media_files(args.incoming):
        if twin := index.find(path):
            plan.append(Step(Action.DUPLICATE, path, detail=f"same as {twin.name}"))
            continue
        stamp, remark = taken_at(path, args.trust_mtime)
        if stamp is None:
            plan.append(Step(Action.UNDATED, path, detail=remark))
            continue
        folder = args.library / f"{stamp:%Y}" / f"{stamp:%Y-%m}"
        target = free_name(folder / f"{stamp:%Y%m%d_%H%M%S}{path.suffix.lower()}", taken)
        plan.append(Step(action, path, target, remark))
        for extra in sidecars(path):
            companion = target.with_suffix(extra.suffix.lower())
            plan.append(Step(action, extra, free_name(companion, taken), "sidecar"))
        index.add(path)
    return plan


# --------------------------------------------------------------- commands


def command_plan(args: argparse.Namespace) -> int:
    plan = make_plan(args)
    for step in plan:
        print(step.describe(args.library))
    summarize(plan)
    return EXIT_OK


def command_run(args: argparse.Namespace) -> int:
    plan, failures = make_plan(args), 0
    args.library.mkdir(parents=True, exist_ok=True)
    with open(args.library / JOURNAL, "w", encoding="utf-8") as journal:
        for step in plan:
            if step.target is None:
                print(step.describe(args.library))
                continue
            record = {"do": step.action.value, "from": str(step.source), "to": str(step.target)}
            journal.write(json.dumps(record) + "\n")
            journal.flush()
            try:
                step.target.parent.mkdir(parents=True, exist_ok=True)
                transfer = shutil.copy2 if step.action is Action.COPY else shutil.move
                transfer(step.source, step.target)
            except OSError as error:
                failures += 1
                print(f"  failed  {step.source}: {error.strerror}", file=sys.stderr)
    summarize(plan)
    return EXIT_PARTIAL if failures else EXIT_OK


def command_undo(args: argparse.Namespace) -> int:
    journal = args.library / JOURNAL
    if not journal.exists():
        print("nothing to undo", file=sys.stderr)
        return EXIT_USAGE
    skipped = 0
    for line in reversed(journal.read_text(encoding="utf-8").splitlines()):
        record = json.loads(line)
        source, target = Path(record["from"]), Path(record["to"])
        if record["do"] == "copy" or not target.exists() or source.exists():
            skipped += 1
            continue
        source.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(target, source)
        print(f"restored  {source}")
    journal.unlink()
    if skipped:
        print(f"{skipped} entries were copies or already in place")
    return EXIT_OK


def summarize(plan: list[Step]) -> None:
    counts = Counter(step.action for step in plan)
    print(", ".join(f"{counts[a]} {a.value}" for a in Action if counts[a]) or "no media files")


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("incoming", type=Path, help="folder with unsorted files")
    shared.add_argument("library", type=Path, help="root of the sorted tree")
    shared.add_argument("--trust-mtime", action="store_true",
                        help="fall back to the modification time when nothing better is known")

    plan = commands.add_parser("plan", parents=[shared], help="print the steps only")
    plan.set_defaults(command=command_plan)
    run = commands.add_parser("run", parents=[shared], help="carry out the steps")
    run.add_argument("--copy", action="store_true", help="leave the originals in place")
    run.set_defaults(command=command_run)
    undo = commands.add_parser("undo", help="move the files of the last run back")
    undo.add_argument("library", type=Path)
    undo.set_defaults(command=command_undo)
    return parser


if __name__ == "__main__":
    options = build_parser().parse_args()
    try:
        sys.exit(options.command(options))
    except KeyboardInterrupt:
        sys.exit(130)
