"""Connection to a Ray cluster, and execution of tasks."""

from __future__ import annotations

import importlib
import logging
import socket
from types import TracebackType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Type

from .. import __version__
from .._types import Progress
from ..errors import GgufError, MachineError, exception_of
from .worker import board_class, worker_function

__all__ = ["Cluster", "ClusterError", "Task"]

#: Polling interval in seconds.
_POLL_INTERVAL = 0.25

#: Seconds to wait for workers to clean up after cancellation.
_SHUTDOWN_TIMEOUT = 30.0


class ClusterError(MachineError):
    """The cluster cannot run the job: Ray is missing, no node is large enough, or a node has another version of this
    package."""


def cluster_error(message: str, help: str = "") -> ClusterError:
    """Return the exception of a cluster error."""
    error = ClusterError(message)
    error.code, error.fault, error.message, error.help = "environment", "environment", message, help
    return error


class Task(NamedTuple):
    """A call of a function of :mod:`gguf_kit.ray.tasks`, and its resources."""

    function: str
    #: Plain types only, so that a node without this package can unpickle them.
    arguments: Dict[str, Any]
    #: Display name.
    label: str
    cpus: int = 1
    #: Memory in bytes.
    memory: int = 0


def _load() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as missing:
        raise cluster_error('Ray is not installed here: pip install "gguf-kit[ray]"') from missing


class Cluster:
    """A connection to a cluster, as a context manager. It checks the package version of all nodes first."""

    def __init__(self, address: Optional[str], retries: int) -> None:
        self._address = address
        self._retries = retries
        self._board: Optional["_Board"] = None

    def __enter__(self) -> "Cluster":
        self._ray = _load()
        self._owns_connection = not self._ray.is_initialized()
        if self._owns_connection:
            self._connect()
        try:
            self._work = self._ray.remote(worker_function())
            self._require_version()
            self._board = _Board(self._ray)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        _kind: Optional[Type[BaseException]],
        _raised: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        if self._board:
            self._board.close()
        if self._owns_connection:
            self._ray.shutdown()

    def _connect(self) -> None:
        try:
            host, _, port = (self._address or "").rpartition(":")
            if port.isdigit():
                # Fail early: Ray retries for minutes.
                name = host.partition("://")[2] or host
                socket.create_connection((name, int(port)), timeout=10).close()
            self._ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError) as error:
            message = f"cannot connect to Ray at {self._address or 'this machine'}: {error}"
            help = "check `ray status` there; a cluster with token authentication needs RAY_AUTH_MODE=token here"
            raise cluster_error(message, help) from error

    def _nodes(self) -> List[Dict[str, Any]]:
        """Return the nodes that are alive and have CPUs."""
        return [n for n in self._ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]

    def _require_version(self) -> None:
        """Raise an error if a node has no or another version of this package."""
        affinity = importlib.import_module("ray.util.scheduling_strategies")
        checks = []
        for node in self._nodes():
            only_there = affinity.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            work = self._work.options(num_cpus=0, scheduling_strategy=only_there, max_retries=3)
            checks.append(work.remote(__version__, "version", {}, "version"))
        refused = []
        for reference in checks:
            try:
                self._result(reference, "version check")
            except ClusterError as error:
                # Ignore a node that was lost meanwhile.
                if not isinstance(error.__cause__, self._ray.exceptions.RayError):
                    refused.append(error)
        if refused:
            raise cluster_error("; ".join(error.message for error in refused), refused[0].help)

    def cpus_per_part(self, parts: int) -> int:
        """Return the CPUs per part that keep all nodes busy."""
        cpus = [int(node["Resources"]["CPU"]) for node in self._nodes()]
        return max(1, min(min(cpus, default=1), sum(cpus) // max(1, parts)))

    def _require_resources(self, task: Task) -> None:
        """Raise an error if no node has the resources of a task; Ray would wait forever."""
        nodes = [node["Resources"] for node in self._nodes()]
        if not nodes or any(
            node["CPU"] >= task.cpus and node.get("memory", 0) >= task.memory for node in nodes
        ):
            return
        cpus, memory = max(node["CPU"] for node in nodes), max(n.get("memory", 0) for n in nodes)
        raise cluster_error(
            f"{task.label} needs {task.cpus} CPUs and {task.memory / 1e9:.1f} GB of memory; the largest node has "
            f"{cpus:.0f} CPUs and {memory / 1e9:.1f} GB",
            "start a larger node, or set cpus= and memory=",
        )

    def run(
        self,
        step: str,
        tasks: Sequence[Task],
        *,
        shared: Any = None,
        progress: Optional[Progress] = None,
        before: int = 0,
        size: int = 0,
        on_result: Optional[Callable[[int, Any], None]] = None,
    ) -> List[Any]:
        """Run tasks on any nodes, with retries if a worker is lost. If one fails or ``progress`` cancels, all are cancelled.

        Parameters
        ----------
        step : str
            Name of the step for ``progress``.
        tasks : sequence of Task
            The tasks.
        shared : object, optional
            Argument that is passed to all tasks.
        progress : callable, optional
            Progress callback.
        before : int, optional
            Number of tasks that were completed earlier.
        size : int, optional
            Total that is reported to ``progress``.
        on_result : callable, optional
            Called with the index and the result of each task.

        Returns
        -------
        list
            Results in the order of the tasks.
        """
        for task in tasks:
            self._require_resources(task)
        shared_reference = None if shared is None else self._ray.put(shared)
        pending = {self._submit(task, shared_reference): number for number, task in enumerate(tasks)}
        results: List[Any] = [None] * len(tasks)

        def report(fraction: float) -> None:
            done = (before + len(tasks) - len(pending) + fraction) / max(1, before + len(tasks))
            if progress and progress(step, int(size * min(1.0, done)), size) is False:
                raise exception_of("interrupted", "interrupted", "interrupted")

        try:
            report(0)
            while pending:
                ready, _ = self._ray.wait(list(pending), timeout=_POLL_INTERVAL)
                for reference in ready:
                    number = pending.pop(reference)
                    results[number] = self._result(reference, tasks[number].label)
                    if on_result:
                        on_result(number, results[number])
                running = [tasks[number].label for number in pending.values()]
                report(self._board.fractions(running) if self._board else 0)
        except BaseException:
            self._cancel(list(pending))
            raise
        return results

    def _submit(self, task: Task, shared: Any) -> Any:
        work = self._work.options(
            num_cpus=task.cpus,
            memory=task.memory or None,
            max_retries=self._retries,
            scheduling_strategy="SPREAD",
            name=f"gguf_kit: {task.label}",
        )
        board = self._board.actor if self._board else None
        return work.remote(__version__, task.function, task.arguments, task.label, shared, board)

    def _result(self, reference: Any, label: str) -> Any:
        try:
            status, node, value = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as failed:
            if isinstance(failed.cause, GgufError):
                raise failed.cause from failed
            raise
        except self._ray.exceptions.RayError as lost:
            message = f"{label} was lost on {self._retries + 1} workers: {str(lost).splitlines()[0]}"
            raise cluster_error(message, "check `ray status` and the Ray logs") from lost
        if status == "done":
            return value
        there = f"has gguf-kit {value}" if value else "has no gguf-kit"
        raise cluster_error(
            f"the node {node} {there}: every node needs version {__version__}, like this machine",
            f'on that node: pip install "gguf-kit[ray]=={__version__}"',
        )

    def _cancel(self, references: List[Any]) -> None:
        """Cancel tasks and let them remove partial outputs. `ray.cancel` could do this, but it may crash the driver if a
        task ends at the same moment (Ray 2.60)."""
        if not references:
            return
        if self._board:
            self._board.cancel()
        count = len(references)
        _, slow = self._ray.wait(references, num_returns=count, timeout=_SHUTDOWN_TIMEOUT)
        for reference in slow:
            self._ray.cancel(reference, force=True)


class _Board:
    """Actor that collects the progress of tasks and tells them to cancel. Tasks continue if the actor is lost."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self.actor = ray.remote(board_class()).options(num_cpus=0, max_restarts=-1).remote()
        self._fractions: Dict[str, float] = {}
        self._request: Any = None

    def fractions(self, labels: Sequence[str]) -> float:
        """Return the sum of the completed fractions of tasks."""
        if self._request is None:
            self._request = self.actor.fractions.remote()
        ready, _ = self._ray.wait([self._request], timeout=0)
        if ready:
            request, self._request = self._request, None
            try:
                self._fractions = self._ray.get(request)
            except self._ray.exceptions.RayError:
                self._fractions = {}
        return sum(self._fractions.get(label, 0.0) for label in labels)

    def cancel(self) -> None:
        """Tell all tasks to cancel."""
        self.actor.cancel.remote()

    def close(self) -> None:
        """Stop the actor."""
        self._ray.kill(self.actor)
