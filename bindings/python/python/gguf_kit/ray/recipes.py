"""Many recipes of one model, each made and measured."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .. import __version__
from .._types import Progress, Source
from ..change import Recipe, _Path
from ..errors import exception_of
from ..judge import Divergence
from .cluster import Cluster, Task
from .evaluation import WORKER_MEMORY
from .locations import location
from .parts import plain

__all__ = ["Measured", "Sweep", "sweep"]

#: A type or mix, alone or with a recipe.
Wanted = Union[str, Tuple[str, Recipe]]


class Measured(NamedTuple):
    """A recipe, what it makes, and what is lost."""

    name: str
    type: str
    #: Bytes of the file.
    bytes: int
    #: Of the data of all tensors.
    bits_per_weight: float
    divergence: Divergence


class Sweep(NamedTuple):
    """What a sweep found: the smallest first."""

    rows: List[Measured]

    def table(self) -> str:
        """The rows as a table of Markdown."""
        lines = [
            "| recipe | type | bytes | bits per weight | divergence | ± | same top | perplexity |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
        ]
        for row in self.rows:
            of = row.divergence
            lines.append(
                f"| {row.name} | {row.type} | {row.bytes} | {row.bits_per_weight:.3f} | {of.divergence:.6f} | "
                f"{of.divergence_error:.6f} | {of.same_top:.4f} | {of.perplexity:.4f} |"
            )
        return "\n".join(lines)


def sweep(
    source: Source,
    recipes: Union[Sequence[str], Mapping[str, Wanted]],
    text: str,
    *,
    imatrix: Optional[_Path] = None,
    context: int = 512,
    windows: Optional[int] = None,
    exact: bool = True,
    keep: Optional[_Path] = None,
    address: Optional[str] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    retries: int = 10,
    progress: Optional[Progress] = None,
) -> Sweep:
    """Makes a model of each recipe, and measures by a text how far it is from the source.

    ``recipes`` are names of types and mixes, or names of your own with a type or ``(type, Recipe(...))``. Each is a
    task: the worker writes the model to its folder for temporary files, measures and removes it. ``keep`` names a
    file, of this machine, that gets a line for each recipe that is done; a call with the same file does only the
    others. All else is as for :func:`gguf_kit.ray.quantize`.
    """
    named = recipes if isinstance(recipes, Mapping) else {name: name for name in recipes}
    works = {name: _work(source, wanted, imatrix) for name, wanted in named.items()}
    if not works:
        raise exception_of("request-invalid", "request", "no recipe is named")
    options = {"context": context, "windows": windows, "exact": exact}
    with Cluster(address, retries) as cluster:
        asked = [
            Task("fingerprints", {"works": list(works.values())}, "the look at recipes"),
            Task("sizes", {"sources": [location(source)]}, "the look at the model"),
        ]
        fingerprints, [size] = cluster.run("planning", asked)
        conditions = json.dumps([__version__, text, options], sort_keys=True)
        keys = {
            name: hashlib.sha256(f"{fingerprint}{conditions}".encode()).hexdigest()
            for name, fingerprint in zip(works, fingerprints)
        }
        known = _read(keep)
        missing = [name for name in works if keys[name] not in known]
        threads = cpus or cluster.share(len(missing))
        needed = WORKER_MEMORY + 2 * size if memory is None else memory
        tasks = [
            Task("measure", {"work": works[name], "options": options, "threads": threads}, name, threads, needed)
            for name in missing
        ]

        def on_result(number: int, found: Dict[str, Any]) -> None:
            key = keys[missing[number]]
            known[key] = found
            if keep is not None:
                _add(keep, {"key": key, "name": missing[number], **found})

        before = len(works) - len(missing)
        cluster.run(
            "measuring", tasks, shared=text, progress=progress, before=before, size=size, on_result=on_result
        )
    rows = [_row(name, str(work["type"]), known[keys[name]]) for name, work in works.items()]
    return Sweep(sorted(rows, key=lambda row: row.bytes))


def _work(source: Source, wanted: Wanted, imatrix: Optional[_Path]) -> Dict[str, Any]:
    kind, recipe = (wanted, Recipe()) if isinstance(wanted, str) else wanted
    given = plain(recipe, imatrix if recipe.imatrix is None else recipe.imatrix)
    return {
        "function": "quantize",
        "source": location(source),
        "type": kind,
        "recipe": given,
        "options": {},
    }


def _row(name: str, kind: str, found: Mapping[str, Any]) -> Measured:
    divergence = Divergence(**found["divergence"])
    return Measured(name, kind, found["bytes"], found["bits_per_weight"], divergence)


def _read(keep: Optional[_Path]) -> Dict[str, Dict[str, Any]]:
    """What is known of earlier calls. A line that was not written to its end counts for nothing."""
    known: Dict[str, Dict[str, Any]] = {}
    if keep is None or not os.path.exists(keep):
        return known
    with open(keep, encoding="utf-8") as file:
        for line in file:
            try:
                found = json.loads(line)
                known[found["key"]] = found
            except (ValueError, KeyError, TypeError):
                continue
    return known


def _add(keep: _Path, found: Dict[str, Any]) -> None:
    with open(keep, "a+b") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            # The line before may lack its end.
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(found).encode() + b"\n")
