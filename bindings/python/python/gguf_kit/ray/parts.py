"""Models made in parts."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from .._types import Progress, Source
from ..change import Recipe, _Path
from ..errors import exception_of
from .cluster import Cluster, Task
from .locations import is_url, location, shards

__all__ = ["Made", "convert", "quantize"]

#: What a worker takes, and what each of its threads does: some times what was measured (`docs/cluster.md`).
_WORKER_MEMORY, _THREAD_MEMORY = 256 << 20, 16 << 20


class Made(NamedTuple):
    """What was written."""

    #: The merged model, or its shards.
    files: List[str]
    #: What one should know: fall-backs, among others.
    notes: List[str]
    #: The types of all matrices, as the text of a recipe.
    recipe: str
    #: How many parts were made now.
    made: int
    #: How many parts an earlier call had made.
    kept: int


def quantize(
    source: Source,
    out: _Path,
    type: str,
    *,
    parts: int = 8,
    imatrix: Optional[_Path] = None,
    recipe: Recipe = Recipe(),
    merge: bool = True,
    resume: bool = True,
    force: bool = False,
    address: Optional[str] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    retries: int = 10,
    progress: Optional[Progress] = None,
) -> Made:
    """A smaller model of a model, in ``parts``, on all nodes of the cluster at ``address``.

    The parts are shards named ``NAME-00001-of-00008.gguf`` beside ``out``. ``merge`` makes one file of them, with the
    bytes that :func:`gguf_kit.quantize` writes, and removes them. Without it, and where ``out`` is ``s3://`` or the
    like, they stay: the shards are the model.

    ``resume`` keeps the parts that an earlier call of the same work has made; others that exist are refused, unless
    ``force`` is given. A part whose worker is lost is made again, up to ``retries`` times. ``address`` is as for
    ``ray.init``: ``auto``, ``ray://host:10001``, or ``None`` for the cluster that is known, or else for this machine alone.
    ``cpus`` and ``memory`` (bytes) say what one part takes; ``progress`` is told bytes of the source that are done.
    """
    work = _work("quantize", source, out, type, recipe, imatrix, {})
    return _make(work, parts, merge, resume, force, address, cpus, memory, retries, progress)


def convert(
    source: _Path,
    out: _Path,
    type: Optional[str] = None,
    *,
    parts: int = 8,
    imatrix: Optional[_Path] = None,
    recipe: Recipe = Recipe(),
    vocab_only: bool = False,
    big_endian: bool = False,
    architecture: Optional[str] = None,
    model_name: Optional[str] = None,
    metadata: Optional[_Path] = None,
    base: Optional[_Path] = None,
    merge: bool = True,
    resume: bool = True,
    force: bool = False,
    address: Optional[str] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    retries: int = 10,
    progress: Optional[Progress] = None,
) -> Made:
    """A model of a checkpoint, as :func:`gguf_kit.convert` makes it; all else is as for :func:`quantize`."""
    options = {
        "vocab_only": vocab_only,
        "big_endian": big_endian,
        "architecture": architecture,
        "model_name": model_name,
        "metadata": None if metadata is None else location(metadata),
        "base": None if base is None else location(base),
    }
    work = _work("convert", source, out, type, recipe, imatrix, options)
    return _make(work, parts, merge, resume, force, address, cpus, memory, retries, progress)


def _work(
    function: str,
    source: Source,
    out: _Path,
    type: Optional[str],
    recipe: Recipe,
    imatrix: Optional[_Path],
    options: Dict[str, Any],
) -> Dict[str, Any]:
    """What is to be made, in plain types."""
    return {
        "function": function,
        "source": location(source),
        "out": location(out),
        "type": type,
        "recipe": plain(recipe, imatrix),
        "options": options,
    }


def plain(recipe: Recipe, imatrix: Optional[_Path] = None) -> Dict[str, Any]:
    """A recipe in plain types, its file under a name for all nodes."""
    file = imatrix if imatrix is not None else recipe.imatrix
    types = list(recipe.tensor_types)
    named = None if file is None else location(file)
    return {**recipe._asdict(), "tensor_types": types, "imatrix": named}


def _make(
    work: Dict[str, Any],
    parts: int,
    merge: bool,
    resume: bool,
    force: bool,
    address: Optional[str],
    cpus: Optional[int],
    memory: Optional[int],
    retries: int,
    progress: Optional[Progress],
) -> Made:
    if not 1 <= parts <= 65535:
        what = f"{parts} parts: there are from 1 to 65535"
        raise exception_of("request-invalid", "request", what)
    out, doing = work["out"], {"quantize": "quantizing", "convert": "converting"}[work["function"]]
    merged = merge and not is_url(out)
    with Cluster(address, retries) as cluster:
        asked = {"work": work, "parts": parts, "merged": merged, "resume": resume, "force": force}
        [plan] = cluster.run("planning", [Task("plan", asked, "plan")])
        threads = cpus or cluster.share(parts)
        # Nobody knows how large a far checkpoint is.
        size = plan["bytes"] or parts
        same = {
            "work": work,
            "parts": parts,
            "fingerprint": plan["fingerprint"],
            "anew": force and not resume,
            "force": force,
            "threads": threads,
        }
        needed = _WORKER_MEMORY + threads * _THREAD_MEMORY + 2 * plan["imatrix_bytes"]
        needed = needed if memory is None else memory
        missing = [number for number in range(1, parts + 1) if number not in plan["there"]]
        tasks = [
            Task("part", {**same, "number": number}, f"part {number} of {parts}", threads, needed)
            for number in missing
        ]
        before = len(plan["there"])
        cluster.run(doing, tasks, progress=progress, before=before, size=size)
        files = shards(out, parts)
        if merged:
            given = {"out": out, "parts": parts, "force": force}
            merging = [Task("merge", given, "merging")]
            cluster.run("merging", merging, progress=progress, size=size)
            cluster.run("removing parts", [Task("remove", {"files": files}, "the removal of parts")])
            files = [out]
    return Made(files, plan["notes"], plan["recipe"], len(missing), before)

