"""The work of many machines, as tasks of `Ray <https://docs.ray.io>`_: quantize, convert, evaluate, sweep.

::

    import gguf_kit.ray

    gguf_kit.ray.quantize("f16.gguf", "q4.gguf", "Q4_K_M", parts=16, address="auto")

The bytes and figures are those of one machine, whichever workers are lost on the way. Every node needs this package in
the same version, and sees inputs and outputs under the same names: a file system that all share, or ``s3://`` and
the like. ``python -m gguf_kit.ray`` is the same as a command.

Ray itself is not needed before a function is called (``pip install "gguf-kit[ray]"``).
"""

from __future__ import annotations

from .cluster import ClusterError
from .evaluation import evaluate
from .parts import Made, convert, quantize
from .recipes import Measured, Sweep, sweep

__all__ = [
    "ClusterError",
    "Made",
    "Measured",
    "Sweep",
    "convert",
    "evaluate",
    "quantize",
    "sweep",
]
