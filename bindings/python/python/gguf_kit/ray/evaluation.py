"""What models know of a text, measured in parts."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union, cast

from .. import Imatrix
from .._types import Progress, Source
from ..change import _Path
from ..errors import exception_of
from ..judge import Divergence, Perplexity, merge_parts
from .cluster import Cluster, Task
from .locations import location

__all__ = ["evaluate"]

#: What a worker takes beside the models.
WORKER_MEMORY = 512 << 20


def evaluate(
    models: Union[Source, Sequence[Source]],
    text: str,
    *,
    reference: Optional[Source] = None,
    context: int = 512,
    windows: Optional[int] = None,
    stride: Optional[int] = None,
    exact: bool = True,
    parts: int = 8,
    keep: Optional[_Path] = None,
    address: Optional[str] = None,
    cpus: Optional[int] = None,
    memory: Optional[int] = None,
    retries: int = 10,
    progress: Optional[Progress] = None,
) -> Union[List[Perplexity], List[Divergence]]:
    """The perplexity of models for a text; or, with a ``reference``, their divergence from it.

    The windows of the text are divided into ``parts``, and the figures are to the bit those of
    :func:`gguf_kit.perplexity` and :func:`gguf_kit.divergence`. Only the models need a place that all nodes see.
    ``keep`` names a folder, of this machine, for the parts that are done: a call with the same folder goes on with
    them. ``progress`` is told bytes of the text that are read. All else is as for :func:`gguf_kit.ray.quantize`.
    """
    # An open model has a length, too.
    named = models if isinstance(models, (list, tuple)) else [cast(Source, models)]
    words = [location(model) for model in named]
    if not words:
        raise exception_of("request-invalid", "request", "no model is named")
    against = None if reference is None else location(reference)
    if stride is not None and against is not None:
        raise exception_of("request-invalid", "request", "stride goes with perplexity only")
    options: Dict[str, Any] = {"context": context, "windows": windows, "exact": exact}
    if against is None:
        options["stride"] = stride
    groups = [[word] for word in words] if against is None else [words]
    with tempfile.TemporaryDirectory() as scratch, Cluster(address, retries) as cluster:
        folder = Path(scratch if keep is None else keep)
        folder.mkdir(parents=True, exist_ok=True)
        threads = cpus or cluster.share(parts)
        read = words if against is None else [*words, against]
        [sizes] = cluster.run("planning", [Task("sizes", {"sources": read}, "the look at models")])
        needed = max(sizes) if against is None else sum(sizes)
        needed = WORKER_MEMORY + needed if memory is None else memory
        tasks, files = [], []
        for model, group in enumerate(groups, 1):
            for number in range(1, parts + 1):
                file = folder / f"model-{model}-part-{number}-of-{parts}.part"
                given = {
                    "models": group,
                    "reference": against,
                    "options": options,
                    "part": f"{number}/{parts}",
                    "kept": file.read_bytes() if file.exists() else None,
                    "threads": threads,
                }
                label = f"part {number} of {parts} of {', '.join(group)}"
                tasks.append(Task("evaluate", given, label, threads, needed))
                files.append(file)
        cluster.run(
            "reading",
            tasks,
            shared=text,
            progress=progress,
            size=len(groups) * len(text.encode()),
            on_result=lambda number, found: _write(files[number], found),
        )
        found: List[Any] = []
        for first in range(0, len(files), parts):
            together = merge_parts(files[first : first + parts])
            if isinstance(together, Imatrix):
                raise exception_of("part-other-run", "request", f"{files[first]} is of an importance matrix")
            found.extend(one for _, one in together)
    return found


def _write(file: Path, found: bytes) -> None:
    """A part appears when it is complete."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.write_bytes(found)
    os.replace(unfinished, file)
