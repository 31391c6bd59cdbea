"""Distributed jobs with `Ray <https://docs.ray.io>`_: quantize, convert, evaluate, sweep.

Examples
--------
::

    import gguf_kit.ray

    gguf_kit.ray.quantize("f16.gguf", "q4.gguf", "Q4_K_M", parts=16, address="auto")

Notes
-----
Outputs and results are identical to those of a single machine, even if workers are lost. Every node needs the same
version of this package, and access to inputs and outputs under the same paths: a shared file system or an object store
such as ``s3://``. ``python -m gguf_kit.ray`` is the command-line interface.

Ray is imported when a function is called (``pip install "gguf-kit[ray]"``).
"""

from __future__ import annotations

from typing import Any as _Any

from .._deprecation import warn_renamed as _warn_renamed
from .cluster import ClusterError
from .evaluation import evaluate
from .jobs import JobResult, convert, quantize
from .sweeps import Sweep, SweepRow, sweep

__all__ = [
    "ClusterError",
    "JobResult",
    "Sweep",
    "SweepRow",
    "convert",
    "evaluate",
    "quantize",
    "sweep",
]

_DEPRECATED = {"Made": "JobResult", "Measured": "SweepRow"}


def __getattr__(name: str) -> _Any:
    """Return the object of a deprecated name."""
    if name in _DEPRECATED:
        _warn_renamed(name, _DEPRECATED[name])
        return globals()[_DEPRECATED[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
