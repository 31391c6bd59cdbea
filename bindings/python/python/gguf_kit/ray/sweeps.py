"""Distributed comparison of quantization recipes."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .. import __version__
from .._deprecation import chunk_limit
from .._types import PathLike, Progress, Source
from ..conversion import Recipe
from ..errors import exception_of
from ..evaluate import KLDivergence
from .cluster import Cluster, Task
from .evaluation import WORKER_MEMORY
from .locations import location
from .jobs import plain_recipe
from .results import from_json

__all__ = ["Sweep", "SweepRow", "sweep"]

#: A quantization type, alone or with a recipe.
TypeAndRecipe = Union[str, Tuple[str, Recipe]]


class SweepRow(NamedTuple):
    """Size and KL divergence of a recipe."""

    name: str
    type: str
    #: File size in bytes.
    bytes: int
    #: Bits per weight of the tensor data.
    bits_per_weight: float
    divergence: KLDivergence


class Sweep(NamedTuple):
    """Results of a sweep, smallest file first."""

    rows: List[SweepRow]

    def table(self) -> str:
        """Return the rows as a Markdown table."""
        lines = [
            "| recipe | type | bytes | bits per weight | divergence | ± | same top | perplexity |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
        ]
        for row in self.rows:
            result = row.divergence
            lines.append(
                f"| {row.name} | {row.type} | {row.bytes} | {row.bits_per_weight:.3f} | {result.mean_kld:.6f} | "
                f"{result.mean_kld_error:.6f} | {result.top1_agreement:.4f} | {result.perplexity:.4f} |"
            )
        return "\n".join(lines)


def sweep(
    source: Source,
    recipes: Union[Sequence[str], Mapping[str, TypeAndRecipe]],
    text: str,
    *,
    imatrix: Optional[PathLike] = None,
    context: int = 512,
    chunks: Optional[int] = None,
    exact: bool = True,
    keep: Optional[PathLike] = None,
    address: Optional[str] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    retries: int = 10,
    progress: Optional[Progress] = None,
    windows: Optional[int] = None,
) -> Sweep:
    """Quantize a model with each recipe and measure the KL divergence from the source.

    Each recipe is a task: the worker writes the model to its temporary directory, measures it and deletes it.

    Parameters
    ----------
    source : path-like or Model
        The model, which all nodes can access.
    recipes : sequence of str or mapping
        Quantization types, or a mapping of names to a type or ``(type, Recipe(...))``.
    text : str
        The evaluation text.
    imatrix : path-like, optional
        Importance matrix of all recipes without their own.
    context, chunks, exact, windows
        As for :func:`gguf_kit.kl_divergence`.
    keep : path-like, optional
        Local file for results of completed recipes. A call with the same file skips them.
    address, cpus, memory, retries, progress
        As for :func:`gguf_kit.ray.quantize`.

    Returns
    -------
    Sweep
    """
    chunks = chunk_limit(chunks, windows)
    named = recipes if isinstance(recipes, Mapping) else {name: name for name in recipes}
    jobs = {name: _job(source, recipe, imatrix) for name, recipe in named.items()}
    if not jobs:
        raise exception_of("request-invalid", "request", "no recipes are given")
    options = {"context": context, "chunks": chunks, "exact": exact}
    with Cluster(address, retries) as cluster:
        planning = [
            Task("fingerprints", {"jobs": list(jobs.values())}, "planning recipes"),
            Task("sizes", {"sources": [location(source)]}, "reading the model size"),
        ]
        fingerprints, [size] = cluster.run("planning", planning)
        # The names are stable: results files store the hash.
        stable = {"context": context, "windows": chunks, "exact": exact}
        conditions = json.dumps([__version__, text, stable], sort_keys=True)
        keys = {
            name: hashlib.sha256(f"{fingerprint}{conditions}".encode()).hexdigest()
            for name, fingerprint in zip(jobs, fingerprints)
        }
        results = _read(keep)
        missing = [name for name in jobs if keys[name] not in results]
        threads = cpus or cluster.cpus_per_part(len(missing))
        needed = WORKER_MEMORY + 2 * size if memory is None else memory
        tasks = [
            Task("measure", {"job": jobs[name], "options": options, "threads": threads}, name, threads, needed)
            for name in missing
        ]

        def on_result(number: int, result: Dict[str, Any]) -> None:
            key = keys[missing[number]]
            results[key] = result
            if keep is not None:
                _append(keep, {"key": key, "name": missing[number], **result})

        before = len(jobs) - len(missing)
        cluster.run(
            "measuring", tasks, shared=text, progress=progress, before=before, size=size, on_result=on_result
        )
    rows = [_row(name, str(job["type"]), results[keys[name]]) for name, job in jobs.items()]
    return Sweep(sorted(rows, key=lambda row: row.bytes))


def _job(source: Source, item: TypeAndRecipe, imatrix: Optional[PathLike]) -> Dict[str, Any]:
    kind, recipe = (item, Recipe()) if isinstance(item, str) else item
    plain = plain_recipe(recipe, imatrix if recipe.imatrix is None else recipe.imatrix)
    return {
        "function": "quantize",
        "source": location(source),
        "type": kind,
        "recipe": plain,
        "options": {},
    }


def _row(name: str, kind: str, result: Mapping[str, Any]) -> SweepRow:
    divergence = from_json(result["divergence"])
    return SweepRow(name, kind, result["bytes"], result["bits_per_weight"], divergence)


def _read(keep: Optional[PathLike]) -> Dict[str, Dict[str, Any]]:
    """Read the results of earlier calls. An incomplete line is ignored."""
    results: Dict[str, Dict[str, Any]] = {}
    if keep is None or not os.path.exists(keep):
        return results
    with open(keep, encoding="utf-8") as file:
        for line in file:
            try:
                result = json.loads(line)
                results[result["key"]] = result
            except (ValueError, KeyError, TypeError):
                continue
    return results


def _append(keep: PathLike, result: Dict[str, Any]) -> None:
    with open(keep, "a+b") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            # The last line may be incomplete.
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(result).encode() + b"\n")
