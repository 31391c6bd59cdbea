"""Tasks of workers. Arguments and results are plain types; ``report`` is the progress callback."""

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
from .results import to_json

__all__ = ["evaluate", "fingerprints", "measure", "merge", "part", "plan", "remove", "sizes", "version"]

Report = Callable[[str, int, int], bool]


def version(report: Report) -> None:
    """Do nothing: a worker that gets here has the package."""


def _run(job: Dict[str, Any], **options: Any) -> gguf_kit.WriteResult:
    """Quantize or convert."""
    outputs = {job["type"]: job["out"]}
    recipe = gguf_kit.Recipe(**job["recipe"])
    function: Any = gguf_kit.convert if job["function"] == "convert" else gguf_kit.quantize
    result: gguf_kit.WriteResult = function(job["source"], outputs, recipe=recipe, **job["options"], **options)
    return result


def _exists(out: str) -> GgufError:
    help = "choose another output, or use force"
    return exception_of("output-exists", "request", f"{out} exists", help=help, file=Path(out))


def _fingerprint(shard: str) -> Optional[str]:
    """Return the fingerprint of a part; ``None`` if the file does not exist, empty if it is not a part."""
    if not is_url(shard) and not os.path.lexists(shard):
        return None
    try:
        return gguf_kit.part_fingerprint(shard) or ""
    except FileMissingError:
        return None
    except gguf_kit.InputError:
        return ""


def plan(
    job: Dict[str, Any], parts: int, merged: bool, resume: bool, force: bool, report: Report
) -> Dict[str, Any]:
    """Return the fingerprint of a job and its complete parts. Raises an error for outputs that exist."""
    planned = _run(job, part=f"1/{parts}", dry_run=True)
    complete = []
    for number, shard in enumerate(shards(job["out"], parts), 1):
        fingerprint = _fingerprint(shard)
        if resume and fingerprint == planned.fingerprint:
            complete.append(number)
        elif fingerprint is not None and not force:
            raise _exists(shard)
    # An earlier run may have been interrupted between merging and deleting the parts.
    if merged and os.path.lexists(job["out"]) and not force and len(complete) < parts:
        raise _exists(job["out"])
    return {
        "fingerprint": planned.fingerprint,
        "notes": planned.notes,
        "recipe": planned.recipe,
        "complete": complete,
        "bytes": _size(job["source"]),
        "imatrix_bytes": _size(job["recipe"]["imatrix"]) if job["recipe"]["imatrix"] else 0,
    }


def _size(source: str) -> int:
    """Return the size of a model or checkpoint in bytes; 0 if unknown."""
    if is_url(source) or os.path.isfile(source):
        try:
            with gguf_kit.open(source) as model:
                return model.nbytes
        except GgufError:
            return 0 if is_url(source) else os.path.getsize(source)
    return sum(file.stat().st_size for file in Path(source).glob("*") if file.is_file())


def sizes(sources: List[str], report: Report) -> List[int]:
    """Return the sizes of models in bytes."""
    return [_size(source) for source in sources]


def _calibration_only(report: Report) -> Report:
    """Return a progress callback that counts only the calibration, which takes nearly all of the time."""
    counted = (0, 0)

    def callback(step: str, done: int, total: int) -> bool:
        nonlocal counted
        if step == "calibrating":
            counted = (done, total)
        return report(step, *counted)

    return callback


def part(
    job: Dict[str, Any],
    number: int,
    parts: int,
    fingerprint: str,
    rewrite: bool,
    force: bool,
    threads: int,
    report: Report,
) -> None:
    """Write a part, unless an earlier attempt of the same job has written it."""
    shard = shards(job["out"], parts)[number - 1]
    if not rewrite and _fingerprint(shard) == fingerprint:
        return
    name = f"{number}/{parts}"
    if _run(job, part=name, dry_run=True).fingerprint != fingerprint:
        message = f"{job['source']} is not the same on all nodes: part {name} would belong to another model"
        help = "use a location that all nodes share"
        raise exception_of("part-other-run", "request", message, help=help)
    progress = _calibration_only(report) if job["recipe"]["calibrate"] else report
    try:
        _run(job, part=name, force=force, threads=threads, progress=progress)
    except OutputExistsError:
        # A worker that seemed lost may have finished.
        if _fingerprint(shard) != fingerprint:
            raise


def merge(out: str, parts: int, force: bool, report: Report) -> None:
    """Merge all parts into one file."""
    files = shards(out, parts)
    missing = [file for file in files if not os.path.exists(file)]
    if missing:
        message = f"{missing[0]} was written by another node and is not accessible here"
        help = "use an output that all nodes share; the same call resumes from completed parts"
        raise exception_of("part-missing", "request", message, help=help)
    if os.path.lexists(out) and not force:
        # The file may come from an earlier attempt.
        if gguf_kit.diff(files[0], out)["verdict"] != "same tensors and metadata":
            raise _exists(out)
        return
    gguf_kit.merge(files[0], out, force=force, progress=report)


def remove(files: List[str], report: Report) -> None:
    """Delete merged parts."""
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
    report: Report,
) -> bytes:
    """Evaluate a part and return the bytes of its results file; ``kept`` is that of an earlier attempt."""
    with _temporary_directory() as folder:
        keep = folder / "evaluation.part"
        if kept is not None:
            keep.write_bytes(kept)
        arguments: Dict[str, Any] = {**options, "part": part, "keep": keep, "resume": True, "threads": threads}
        if reference is None:
            gguf_kit.perplexity(models[0], shared, progress=report, **arguments)
        else:
            gguf_kit.kl_divergence(reference, models, shared, progress=report, **arguments)
        return keep.read_bytes()


def fingerprints(jobs: List[Dict[str, Any]], report: Report) -> List[Optional[str]]:
    """Return the fingerprints of jobs: they identify the model and the recipe."""
    with _temporary_directory() as folder:
        out = str(folder / "output.gguf")
        return [_run({**job, "out": out}, part="1/1", dry_run=True).fingerprint for job in jobs]


def measure(
    job: Dict[str, Any], options: Dict[str, Any], threads: int, shared: str, report: Report
) -> Dict[str, Any]:
    """Quantize a model with a recipe and measure its size and KL divergence."""
    with _temporary_directory() as folder:
        output = folder / "output.gguf"
        _run({**job, "out": str(output)}, threads=threads)
        [result] = gguf_kit.kl_divergence(
            job["source"], [output], shared, threads=threads, progress=report, **options
        )
        with gguf_kit.open(output) as model:
            elements = sum(math.prod(tensor.shape) for tensor in model.tensors)
            data = sum(tensor.nbytes or 0 for tensor in model.tensors)
            return {
                "bytes": model.nbytes,
                "bits_per_weight": 8 * data / elements,
                "divergence": to_json(result),
            }


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    """Temporary directory of a task. Deletes those of killed workers on this machine first."""
    base = Path(tempfile.gettempdir())
    for directory in base.glob("gguf-kit-ray-*"):
        worker = directory.name.split("-")[3]
        if os.name == "posix" and not _is_alive(int(worker)):
            shutil.rmtree(directory, ignore_errors=True)
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
