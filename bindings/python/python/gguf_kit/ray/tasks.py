"""What workers do. Arguments and results are plain; ``tell`` is told how far the work is."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import gguf_kit

from ..errors import FileMissingError, GgufError, OutputExistsError, exception_of
from .locations import is_url, shards

__all__ = ["evaluate", "fingerprints", "measure", "merge", "part", "plan", "remove", "sizes", "version"]

Tell = Callable[[str, int, int], bool]


def version(tell: Tell) -> None:
    """Nothing: who gets here has the package."""


def _make(work: Dict[str, Any], **how: Any) -> gguf_kit.Made:
    """Makes files as ``work`` says: ``quantize`` or ``convert``."""
    outputs = {work["type"]: work["out"]}
    recipe = gguf_kit.Recipe(**work["recipe"])
    make: Any = gguf_kit.convert if work["function"] == "convert" else gguf_kit.quantize
    made: gguf_kit.Made = make(work["source"], outputs, recipe=recipe, **work["options"], **how)
    return made


def _exists(out: str) -> GgufError:
    help = "name another output, or say force"
    return exception_of("output-exists", "request", f"{out} exists", help=help, file=Path(out))


def _found(shard: str) -> Optional[str]:
    """The fingerprint of what is there; ``None`` for nothing, and empty for what is no part."""
    if not is_url(shard) and not os.path.lexists(shard):
        return None
    try:
        return gguf_kit.part_fingerprint(shard) or ""
    except FileMissingError:
        return None
    except gguf_kit.InputError:
        return ""


def plan(
    work: Dict[str, Any], parts: int, merged: bool, resume: bool, force: bool, tell: Tell
) -> Dict[str, Any]:
    """What the parts have in common, and which of them are there. Refuses what must not be replaced."""
    planned = _make(work, part=f"1/{parts}", dry_run=True)
    there = []
    for number, shard in enumerate(shards(work["out"], parts), 1):
        found = _found(shard)
        if resume and found == planned.fingerprint:
            there.append(number)
        elif found is not None and not force:
            raise _exists(shard)
    # A run may have ended between the merged file and the removal of its parts.
    complete = len(there) == parts
    if merged and os.path.lexists(work["out"]) and not force and not complete:
        raise _exists(work["out"])
    return {
        "fingerprint": planned.fingerprint,
        "notes": planned.notes,
        "recipe": planned.recipe,
        "there": there,
        "bytes": _size(work["source"]),
        "imatrix_bytes": _size(work["recipe"]["imatrix"]) if work["recipe"]["imatrix"] else 0,
    }


def _size(source: str) -> int:
    """Bytes of a model or of the weights of a checkpoint; 0 if nobody can tell."""
    if is_url(source) or os.path.isfile(source):
        try:
            with gguf_kit.open(source) as model:
                return model.nbytes
        except GgufError:
            return 0 if is_url(source) else os.path.getsize(source)
    return sum(file.stat().st_size for file in Path(source).glob("*") if file.is_file())


def sizes(sources: List[str], tell: Tell) -> List[int]:
    """Bytes of models."""
    return [_size(source) for source in sources]


def part(
    work: Dict[str, Any],
    number: int,
    parts: int,
    fingerprint: str,
    anew: bool,
    force: bool,
    threads: int,
    tell: Tell,
) -> None:
    """One part; nothing if it is there, of another try of the same work."""
    shard = shards(work["out"], parts)[number - 1]
    if not anew and _found(shard) == fingerprint:
        return
    name = f"{number}/{parts}"
    if _make(work, part=name, dry_run=True).fingerprint != fingerprint:
        what = f"{work['source']} is not the same on all nodes: part {name} would be of another model"
        help = "give a location that all nodes share"
        raise exception_of("part-other-run", "request", what, help=help)
    try:
        _make(work, part=name, force=force, threads=threads, progress=tell)
    except OutputExistsError:
        # A worker that was taken for lost may have gone on.
        if _found(shard) != fingerprint:
            raise


def merge(out: str, parts: int, force: bool, tell: Tell) -> None:
    """One file of all parts."""
    files = shards(out, parts)
    unseen = [file for file in files if not os.path.exists(file)]
    if unseen:
        what = f"{unseen[0]} was written by another node and is not seen here"
        help = "give an output that all nodes share; parts that are made are kept, and the same call goes on with them"
        raise exception_of("part-missing", "request", what, help=help)
    if os.path.lexists(out) and not force:
        # Of an earlier try, or somebody else's.
        if gguf_kit.diff(files[0], out)["verdict"] != "same tensors and metadata":
            raise _exists(out)
        return
    gguf_kit.merge(files[0], out, force=force, progress=tell)


def remove(files: List[str], tell: Tell) -> None:
    """Removes parts of which one file was made."""
    for file in files:
        if os.path.lexists(file):
            os.unlink(file)


def evaluate(
    models: List[str],
    reference: Optional[str],
    options: Dict[str, Any],
    part: str,
    kept: Optional[bytes],
    threads: int,
    shared: str,
    tell: Tell,
) -> bytes:
    """The part of an evaluation, as the bytes of its file; ``kept`` is what is known of it."""
    with _scratch() as folder:
        keep = folder / "evaluation.part"
        if kept is not None:
            keep.write_bytes(kept)
        how: Dict[str, Any] = {**options, "part": part, "keep": keep, "resume": True, "threads": threads}
        if reference is None:
            gguf_kit.perplexity(models[0], shared, progress=tell, **how)
        else:
            gguf_kit.divergence(reference, models, shared, progress=tell, **how)
        return keep.read_bytes()


def fingerprints(works: List[Dict[str, Any]], tell: Tell) -> List[Optional[str]]:
    """What tells recipes of a model, and the model, from others."""
    with _scratch() as folder:
        out = str(folder / "made.gguf")
        return [_make({**work, "out": out}, part="1/1", dry_run=True).fingerprint for work in works]


def measure(
    work: Dict[str, Any], options: Dict[str, Any], threads: int, shared: str, tell: Tell
) -> Dict[str, Any]:
    """A recipe of a model: how large what it makes is, and how far from the model."""
    with _scratch() as folder:
        made = folder / "made.gguf"
        _make({**work, "out": str(made)}, threads=threads)
        [found] = gguf_kit.divergence(
            work["source"], [made], shared, threads=threads, progress=tell, **options
        )
        with gguf_kit.open(made) as model:
            elements = sum(math.prod(tensor.shape) for tensor in model.tensors)
            data = sum(tensor.nbytes or 0 for tensor in model.tensors)
            return {
                "bytes": model.nbytes,
                "bits_per_weight": 8 * data / elements,
                "divergence": found._asdict(),
            }


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the time of a task. Those of workers of this machine that were killed are removed."""
    base = Path(tempfile.gettempdir())
    for left in base.glob("gguf-kit-ray-*"):
        worker = left.name.split("-")[3]
        if os.name == "posix" and not _is_alive(int(worker)):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"gguf-kit-ray-{os.getpid()}-") as folder:
        yield Path(folder)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
