"""Code that is pickled by value, so that it runs on workers without this package.

Cloudpickle serializes nested functions and classes by value, and importable ones by name.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

__all__ = ["board_class", "worker_function"]


def worker_function() -> Callable[..., Tuple[str, str, Any]]:
    """Return the entry point of all tasks: it checks the package version and calls the task."""

    def work(
        required_version: str,
        function: str,
        arguments: Dict[str, Any],
        label: str,
        shared: Any = None,
        board: Any = None,
    ) -> Tuple[str, str, Any]:
        import importlib
        import time

        ray: Any = importlib.import_module("ray")
        context = ray.get_runtime_context()
        node = f"{ray.util.get_node_ip_address()} (node {context.get_node_id()[:12]})"
        try:
            version = importlib.import_module("gguf_kit").__version__
        except ImportError:
            version = None
        if version != required_version:
            return "refused", node, version
        last, response = time.monotonic(), None
        if board is not None:
            try:
                if not ray.get(board.report.remote(label, 0.0), timeout=10):
                    return "cancelled", node, None
            except ray.exceptions.RayError:
                pass

        def report(_step: str, done: int, total: int) -> bool:
            """Report progress once per second; returns False if the task is cancelled."""
            nonlocal last, response
            if board is None or time.monotonic() - last < 1:
                return True
            last, previous = time.monotonic(), response
            response = board.report.remote(label, done / total if total else 0.0)
            try:
                return previous is None or bool(ray.get(previous, timeout=0.1))
            except ray.exceptions.RayError:
                return True

        tasks = importlib.import_module("gguf_kit.ray.tasks")
        arguments = {**arguments, "report": report} if shared is None else {**arguments, "report": report, "shared": shared}
        return "done", node, getattr(tasks, function)(**arguments)

    return work


def board_class() -> Any:
    """Return the class of the actor that collects progress and distributes cancellation."""

    class Board:
        def __init__(self) -> None:
            self.progress: Dict[str, float] = {}
            self.cancelled = False

        def report(self, label: str, fraction: float) -> bool:
            self.progress[label] = fraction
            return not self.cancelled

        def cancel(self) -> None:
            self.cancelled = True

        def fractions(self) -> Dict[str, float]:
            return self.progress

    return Board
