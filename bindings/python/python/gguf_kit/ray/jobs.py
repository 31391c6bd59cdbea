"""Distributed quantization and conversion."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from .._deprecation import warn_renamed
from .._types import PathLike, Progress, Source
from ..conversion import Recipe, native_recipe
from ..errors import exception_of
from .cluster import Cluster, Task
from .locations import is_url, location, shards

__all__ = ["JobResult", "convert", "plain_recipe", "quantize"]

#: Memory of a worker and of each of its threads in bytes: several times the measured values (`docs/cluster.md`).
_WORKER_MEMORY, _THREAD_MEMORY = 256 << 20, 16 << 20
#: Memory of a calibration beside the model in bytes: Hessians and activations (`docs/calibration.md`).
_CALIBRATION_MEMORY = 3 << 30


class JobResult(NamedTuple):
    """Result of a distributed job."""

    #: The merged model, or its shards.
    files: List[str]
    #: Notes, such as fallback types.
    notes: List[str]
    #: The types of all matrices as the text of a recipe.
    recipe: str
    #: Number of parts written by this call.
    written: int
    #: Number of parts written by earlier calls.
    reused: int

    @property
    def made(self) -> int:
        """Deprecated alias of ``written``."""
        warn_renamed("made", "written")
        return self.written

    @property
    def kept(self) -> int:
        """Deprecated alias of ``reused``."""
        warn_renamed("kept", "reused")
        return self.reused


def quantize(
    source: Source,
    out: PathLike,
    type: str,
    *,
    parts: int = 8,
    imatrix: Optional[PathLike] = None,
    recipe: Recipe = Recipe(),
    merge: bool = True,
    resume: bool = True,
    force: bool = False,
    address: Optional[str] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    retries: int = 10,
    progress: Optional[Progress] = None,
) -> JobResult:
    """Quantize a model in parts on all nodes of a cluster.

    The parts are shards named ``NAME-00001-of-00008.gguf`` next to ``out``. The merged file is byte-identical to the
    output of :func:`gguf_kit.quantize`, unless ``recipe`` calibrates with a text: then each part compensates its own
    errors only, and the file depends on the number of parts.

    Parameters
    ----------
    source : path-like or Model
        The model, which all nodes can access.
    out : path-like
        The output file or object.
    type : str
        The quantization type.
    parts : int, optional
        Number of parts.
    imatrix : path-like, optional
        Importance matrix, instead of that of ``recipe``.
    recipe : Recipe, optional
        Types of tensors and quantization options.
    merge : bool, optional
        Merge the parts into one file and delete them. Parts in object stores stay shards.
    resume : bool, optional
        Reuse parts written by earlier calls of the same job.
    force : bool, optional
        Overwrite existing outputs.
    address : str, optional
        Cluster address as for ``ray.init``: ``auto`` or ``ray://host:10001``. ``None`` uses the configured cluster, or
        the local machine.
    cpus, memory : int, optional
        CPUs and bytes of memory per part.
    retries : int, optional
        Number of retries of a part whose worker is lost.
    progress : callable, optional
        Progress callback; counts bytes of the source.

    Returns
    -------
    JobResult
    """
    job = _job("quantize", source, out, type, recipe, imatrix, {})
    return _run(job, parts, merge, resume, force, address, cpus, memory, retries, progress)


def convert(
    source: PathLike,
    out: PathLike,
    type: Optional[str] = None,
    *,
    parts: int = 8,
    imatrix: Optional[PathLike] = None,
    recipe: Recipe = Recipe(),
    vocab_only: bool = False,
    big_endian: bool = False,
    architecture: Optional[str] = None,
    model_name: Optional[str] = None,
    metadata: Optional[PathLike] = None,
    base: Optional[PathLike] = None,
    merge: bool = True,
    resume: bool = True,
    force: bool = False,
    address: Optional[str] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    retries: int = 10,
    progress: Optional[Progress] = None,
) -> JobResult:
    """Convert a checkpoint in parts on all nodes of a cluster, like :func:`gguf_kit.convert`.

    Parameters
    ----------
    source : path-like
        The checkpoint, which all nodes can access.
    out : path-like
        The output file or object.
    type : str, optional
        The quantization type; the types of the source by default.
    vocab_only, big_endian, architecture, model_name, metadata, base
        As for :func:`gguf_kit.convert`.
    parts, imatrix, recipe, merge, resume, force, address, cpus, memory, retries, progress
        As for :func:`quantize`.

    Returns
    -------
    JobResult
    """
    options = {
        "vocab_only": vocab_only,
        "big_endian": big_endian,
        "architecture": architecture,
        "model_name": model_name,
        "metadata": None if metadata is None else location(metadata),
        "base": None if base is None else location(base),
    }
    job = _job("convert", source, out, type, recipe, imatrix, options)
    return _run(job, parts, merge, resume, force, address, cpus, memory, retries, progress)


def _job(
    function: str,
    source: Source,
    out: PathLike,
    type: Optional[str],
    recipe: Recipe,
    imatrix: Optional[PathLike],
    options: Dict[str, Any],
) -> Dict[str, Any]:
    """Return a job in plain types."""
    return {
        "function": function,
        "source": location(source),
        "out": location(out),
        "type": type,
        "recipe": plain_recipe(recipe, imatrix),
        "options": options,
    }


def plain_recipe(recipe: Recipe, imatrix: Optional[PathLike] = None) -> Dict[str, Any]:
    """Return a recipe in plain types, with the locations of its files."""
    plain = native_recipe(recipe)
    file = imatrix if imatrix is not None else recipe.imatrix
    data = recipe.calibration_data
    return {
        **plain,
        "imatrix": None if file is None else location(file),
        "calibrate": [text if text == "bundled" else location(text) for text in plain["calibrate"]],
        "calibration_data": None if data is None else location(data),
    }


def _run(
    job: Dict[str, Any],
    parts: int,
    merge: bool,
    resume: bool,
    force: bool,
    address: Optional[str],
    cpus: Optional[int],
    memory: Optional[int],
    retries: int,
    progress: Optional[Progress],
) -> JobResult:
    if not 1 <= parts <= 65535:
        raise exception_of("request-invalid", "request", f"{parts} parts; expected 1 to 65535")
    out, step = job["out"], {"quantize": "quantizing", "convert": "converting"}[job["function"]]
    merged = merge and not is_url(out)
    with Cluster(address, retries) as cluster:
        arguments = {"job": job, "parts": parts, "merged": merged, "resume": resume, "force": force}
        [plan] = cluster.run("planning", [Task("plan", arguments, "plan")])
        threads = cpus or cluster.cpus_per_part(parts)
        # The size of a remote checkpoint is unknown.
        size = plan["bytes"] or parts
        common = {
            "job": job,
            "parts": parts,
            "fingerprint": plan["fingerprint"],
            "rewrite": force and not resume,
            "force": force,
            "threads": threads,
        }
        needed = _WORKER_MEMORY + threads * _THREAD_MEMORY + 2 * plan["imatrix_bytes"]
        if job["recipe"]["calibrate"]:
            needed += plan["bytes"] + _CALIBRATION_MEMORY
        needed = needed if memory is None else memory
        missing = [number for number in range(1, parts + 1) if number not in plan["complete"]]
        tasks = [
            Task("part", {**common, "number": number}, f"part {number} of {parts}", threads, needed)
            for number in missing
        ]
        before = len(plan["complete"])
        cluster.run(step, tasks, progress=progress, before=before, size=size)
        files = shards(out, parts)
        if merged:
            arguments = {"out": out, "parts": parts, "force": force}
            merging = [Task("merge", arguments, "merging")]
            cluster.run("merging", merging, progress=progress, size=size)
            cluster.run("removing parts", [Task("remove", {"files": files}, "removing parts")])
            files = [out]
    return JobResult(files, plan["notes"], plan["recipe"], len(missing), before)

