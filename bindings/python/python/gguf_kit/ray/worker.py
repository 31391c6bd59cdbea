"""What is sent to workers as it is, so that it also runs where this package is missing.

Functions and classes that stand within a function go to workers by value; all others by their name, for the package
that is there.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

__all__ = ["board_class", "worker_function"]


def worker_function() -> Callable[..., Tuple[str, str, Any]]:
    """What every task begins with: it looks which version of the package is there, and calls it."""

    def work(
        wanted: str,
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
            found = importlib.import_module("gguf_kit").__version__
        except ImportError:
            found = None
        if found != wanted:
            return "refused", node, found
        last, answer = time.monotonic(), None
        if board is not None:
            try:
                if not ray.get(board.tell.remote(label, 0.0), timeout=10):
                    return "ended", node, None
            except ray.exceptions.RayError:
                pass

        def tell(_what: str, done: int, total: int) -> bool:
            """Once a second; False if the task is to end."""
            nonlocal last, answer
            if board is None or time.monotonic() - last < 1:
                return True
            last, before = time.monotonic(), answer
            answer = board.tell.remote(label, done / total if total else 0.0)
            try:
                return before is None or bool(ray.get(before, timeout=0.1))
            except ray.exceptions.RayError:
                return True

        tasks = importlib.import_module("gguf_kit.ray.tasks")
        given = dict(arguments, tell=tell) if shared is None else dict(arguments, tell=tell, shared=shared)
        return "done", node, getattr(tasks, function)(**given)

    return work


def board_class() -> Any:
    """The actor that tasks tell how far they are, and that answers whether they are to go on."""

    class Board:
        def __init__(self) -> None:
            self.shares: Dict[str, float] = {}
            self.ended = False

        def tell(self, label: str, share: float) -> bool:
            self.shares[label] = share
            return not self.ended

        def end(self) -> None:
            self.ended = True

        def look(self) -> Dict[str, float]:
            return self.shares

    return Board
