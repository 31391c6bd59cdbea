"""Distributed evaluation."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union, cast

from .. import Imatrix
from .._deprecation import chunk_limit
from .._types import PathLike, Progress, Source
from ..errors import exception_of
from ..evaluate import KLDivergence, Perplexity, merge_parts
from .cluster import Cluster, Task
from .locations import location

__all__ = ["evaluate"]

#: Memory of a worker in addition to the models, in bytes.
WORKER_MEMORY = 512 << 20


def evaluate(
    models: Union[Source, Sequence[Source]],
    text: str,
    *,
    reference: Optional[Source] = None,
    context: int = 512,
    chunks: Optional[int] = None,
    stride: Optional[int] = None,
    exact: bool = True,
    parts: int = 8,
    keep: Optional[PathLike] = None,
    address: Optional[str] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    retries: int = 10,
    progress: Optional[Progress] = None,
    windows: Optional[int] = None,
) -> Union[List[Perplexity], List[KLDivergence]]:
    """Measure the perplexity of models, or their KL divergence from a reference model.

    The results are bit-exact to :func:`gguf_kit.perplexity` and :func:`gguf_kit.kl_divergence`.

    Parameters
    ----------
    models : path-like or Model, or a sequence of them
        The models, which all nodes can access.
    text : str
        The text, which is split into chunks.
    reference : path-like or Model, optional
        The reference model of the KL divergence.
    context, chunks, stride, exact, windows
        As for :func:`gguf_kit.perplexity`.
    parts : int, optional
        Number of parts that the chunks are divided into.
    keep : path-like, optional
        Local directory for completed parts. A call with the same directory resumes from them.
    address, cpus, memory, retries
        As for :func:`gguf_kit.ray.quantize`.
    progress : callable, optional
        Progress callback; counts bytes of the text.

    Returns
    -------
    list of Perplexity or list of KLDivergence
        One result per model.
    """
    chunks = chunk_limit(chunks, windows)
    # An open model is a sequence too.
    named = models if isinstance(models, (list, tuple)) else [cast(Source, models)]
    words = [location(model) for model in named]
    if not words:
        raise exception_of("request-invalid", "request", "no models are given")
    against = None if reference is None else location(reference)
    if stride is not None and against is not None:
        raise exception_of("request-invalid", "request", "stride applies to perplexity only")
    options: Dict[str, Any] = {"context": context, "chunks": chunks, "exact": exact}
    if against is None:
        options["stride"] = stride
    groups = [[word] for word in words] if against is None else [words]
    with tempfile.TemporaryDirectory() as scratch, Cluster(address, retries) as cluster:
        folder = Path(scratch if keep is None else keep)
        folder.mkdir(parents=True, exist_ok=True)
        threads = cpus or cluster.cpus_per_part(parts)
        read = words if against is None else [*words, against]
        [sizes] = cluster.run("planning", [Task("sizes", {"sources": read}, "reading model sizes")])
        needed = max(sizes) if against is None else sum(sizes)
        needed = WORKER_MEMORY + needed if memory is None else memory
        tasks, files = [], []
        for model, group in enumerate(groups, 1):
            for number in range(1, parts + 1):
                file = folder / f"model-{model}-part-{number}-of-{parts}.part"
                arguments = {
                    "models": group,
                    "reference": against,
                    "options": options,
                    "part": f"{number}/{parts}",
                    "kept": file.read_bytes() if file.exists() else None,
                    "threads": threads,
                }
                label = f"part {number} of {parts} of {', '.join(group)}"
                tasks.append(Task("evaluate", arguments, label, threads, needed))
                files.append(file)
        cluster.run(
            "reading",
            tasks,
            shared=text,
            progress=progress,
            size=len(groups) * len(text.encode()),
            on_result=lambda number, data: _write(files[number], data),
        )
        results: List[Any] = []
        for first in range(0, len(files), parts):
            merged = merge_parts(files[first : first + parts])
            if isinstance(merged, Imatrix):
                raise exception_of("part-other-run", "request", f"{files[first]} is part of an importance matrix")
            results.extend(result for _, result in merged)
    return results


def _write(file: Path, data: bytes) -> None:
    """Write a file with an atomic rename."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.write_bytes(data)
    os.replace(unfinished, file)
