"""A cluster of Ray: which nodes may work, and tasks that run there."""

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

#: Seconds between two looks at the work.
_LOOK = 0.25

#: Seconds that workers have to end in good order.
_PATIENCE = 30.0


class ClusterError(MachineError):
    """The cluster cannot do the work: there is no Ray, no node that is large enough, or a node has not this version of
    this package."""


def cluster_error(message: str, help: str = "") -> ClusterError:
    """The exception for a fault of the cluster."""
    error = ClusterError(message)
    error.code, error.fault, error.message, error.help = "environment", "environment", message, help
    return error


class Task(NamedTuple):
    """A call of a function of :mod:`gguf_kit.ray.tasks`, and what it needs."""

    function: str
    #: Of plain types only: a node without this package has to be able to read them.
    arguments: Dict[str, Any]
    #: What people call it.
    label: str
    cpus: int = 1
    #: In bytes.
    memory: int = 0


def _load() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as missing:
        raise cluster_error('Ray is not installed here: pip install "gguf-kit[ray]"') from missing


class Cluster:
    """A connection to a cluster, for the time of a ``with``. All nodes are asked for their version first."""

    def __init__(self, address: Optional[str], retries: int) -> None:
        self._address = address
        self._retries = retries
        self._board: Optional["_Board"] = None

    def __enter__(self) -> "Cluster":
        self._ray = _load()
        self._ours = not self._ray.is_initialized()
        if self._ours:
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
        if self._ours:
            self._ray.shutdown()

    def _connect(self) -> None:
        try:
            host, _, port = (self._address or "").rpartition(":")
            if port.isdigit():
                # Ray itself tries for minutes.
                name = host.partition("://")[2] or host
                socket.create_connection((name, int(port)), timeout=10).close()
            self._ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError) as fault:
            message = f"no Ray at {self._address or 'this machine'}: {fault}"
            help = "look at `ray status` there; of a cluster with a token, RAY_AUTH_MODE=token has to be set here"
            raise cluster_error(message, help) from fault

    def _nodes(self) -> List[Dict[str, Any]]:
        """Those that can work."""
        return [n for n in self._ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]

    def _require_version(self) -> None:
        """Refuses a node without this package, or with another version, before anything is written."""
        affinity = importlib.import_module("ray.util.scheduling_strategies")
        asked = []
        for node in self._nodes():
            only_there = affinity.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            work = self._work.options(num_cpus=0, scheduling_strategy=only_there, max_retries=3)
            asked.append(work.remote(__version__, "version", {}, "version"))
        refused = []
        for reference in asked:
            try:
                self._result(reference, "the look at a node")
            except ClusterError as fault:
                # A node that is lost in this moment is not asked again.
                if not isinstance(fault.__cause__, self._ray.exceptions.RayError):
                    refused.append(fault)
        if refused:
            raise cluster_error("; ".join(fault.message for fault in refused), refused[0].help)

    def share(self, parts: int) -> int:
        """CPUs for each of several parts, so that all nodes are busy."""
        cpus = [int(node["Resources"]["CPU"]) for node in self._nodes()]
        return max(1, min(min(cpus, default=1), sum(cpus) // max(1, parts)))

    def _require_room(self, task: Task) -> None:
        """Refuses what no node can ever do, which Ray would wait for."""
        nodes = [node["Resources"] for node in self._nodes()]
        if not nodes or any(
            node["CPU"] >= task.cpus and node.get("memory", 0) >= task.memory for node in nodes
        ):
            return
        cpus, memory = max(node["CPU"] for node in nodes), max(n.get("memory", 0) for n in nodes)
        raise cluster_error(
            f"{task.label} needs {task.cpus} CPUs and {task.memory / 1e9:.1f} GB of memory; the largest node has "
            f"{cpus:.0f} CPUs and {memory / 1e9:.1f} GB",
            "start a larger node, or say how much is needed with cpus= and memory=",
        )

    def run(
        self,
        what: str,
        tasks: Sequence[Task],
        *,
        shared: Any = None,
        progress: Optional[Progress] = None,
        before: int = 0,
        size: int = 0,
        on_result: Optional[Callable[[int, Any], None]] = None,
    ) -> List[Any]:
        """Does tasks, anywhere, again where a worker is lost; their results in order.

        ``shared`` goes to each of them. ``progress`` is told how much of ``size`` is done; ``before`` is the number of
        tasks that were done before. If one fails, or ``progress`` says ``False``, all end.
        """
        for task in tasks:
            self._require_room(task)
        text = None if shared is None else self._ray.put(shared)
        pending = {self._submit(task, text): number for number, task in enumerate(tasks)}
        results: List[Any] = [None] * len(tasks)

        def tell(shares: float) -> None:
            done = (before + len(tasks) - len(pending) + shares) / max(1, before + len(tasks))
            if progress and progress(what, int(size * min(1.0, done)), size) is False:
                raise exception_of("interrupted", "interrupted", "interrupted")

        try:
            tell(0)
            while pending:
                ready, _ = self._ray.wait(list(pending), timeout=_LOOK)
                for reference in ready:
                    number = pending.pop(reference)
                    results[number] = self._result(reference, tasks[number].label)
                    if on_result:
                        on_result(number, results[number])
                at_work = [tasks[number].label for number in pending.values()]
                tell(self._board.shares(at_work) if self._board else 0)
        except BaseException:
            self._end(list(pending))
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
            verdict, node, value = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as failed:
            if isinstance(failed.cause, GgufError):
                raise failed.cause from failed
            raise
        except self._ray.exceptions.RayError as lost:
            message = f"{label} was lost on {self._retries + 1} workers: {str(lost).splitlines()[0]}"
            raise cluster_error(message, "look at `ray status` and the logs of Ray") from lost
        if verdict == "done":
            return value
        there = f"has gguf-kit {value}" if value else "has no gguf-kit"
        raise cluster_error(
            f"the node {node} {there}: every node needs version {__version__}, as here",
            f'there: pip install "gguf-kit[ray]=={__version__}"',
        )

    def _end(self, references: List[Any]) -> None:
        """Ends tasks in good order: they remove what they have not written to its end. `ray.cancel` would do for that,
        but a task that ends at that moment may end the driver (Ray 2.60)."""
        if not references:
            return
        if self._board:
            self._board.end()
        count = len(references)
        _, slow = self._ray.wait(references, num_returns=count, timeout=_PATIENCE)
        for reference in slow:
            self._ray.cancel(reference, force=True)


class _Board:
    """What tasks say of themselves, and where they read whether they are to end. Work goes on where it is lost."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self.actor = ray.remote(board_class()).options(num_cpus=0, max_restarts=-1).remote()
        self._known: Dict[str, float] = {}
        self._asked: Any = None

    def shares(self, labels: Sequence[str]) -> float:
        """How much these tasks have done together, each 1 at most."""
        if self._asked is None:
            self._asked = self.actor.look.remote()
        ready, _ = self._ray.wait([self._asked], timeout=0)
        if ready:
            asked, self._asked = self._asked, None
            try:
                self._known = self._ray.get(asked)
            except self._ray.exceptions.RayError:
                self._known = {}
        return sum(self._known.get(label, 0.0) for label in labels)

    def end(self) -> None:
        """Tells all tasks to end."""
        self.actor.end.remote()

    def close(self) -> None:
        """Ends the actor."""
        self._ray.kill(self.actor)
