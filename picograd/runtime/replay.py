"""Replay: the launches of a tape as one CUDA graph, which the driver launches at once.

Kernels that do not wait for each other run side by side where there is room on the GPU, if that is
faster: small ones fill it together, large ones may be in each other's way. No estimate told them
apart, so the first launches of both forms are timed.

A node holds a copy of its kernel's parameters. Where words of the tape's table have changed since,
nodes that read them are given theirs again before the launch, and the others stay.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from picograd.helpers import direct
from picograd.runtime.device import TapeLaunch
from picograd.runtime.driver import Driver

Call = tuple[Any, int, int, int, int]  # function, blocks, threads, shared bytes, parameters


class Replay:
    """The graph of some calls, each of which reads words of a table."""

    __slots__ = ("dropped", "executable", "driver", "graph", "nodes", "params", "readers", "stale")
    executable: Any

    def __init__(
        self,
        driver: Driver,
        calls: Sequence[Call],
        words: Sequence[Sequence[int]],
        waits: Sequence[Sequence[int]],
        dropped: "deque[tuple[str, Any]]",
    ) -> None:
        """Make the graph of calls, each of which waits for some before it.

        DeviceError where the driver does not make it.
        """
        self.driver, self.dropped = driver, dropped
        self.graph = self.executable = None
        self.graph = driver.call("cuGraphCreate", 0)
        self.params = [node_params(driver, call) for call in calls]
        self.nodes: list[Any] = []
        for params, waited in zip(self.params, waits, strict=True):
            before = [self.nodes[number] for number in waited]
            add = ("cuGraphAddKernelNode", self.graph, before, len(before), params)
            self.nodes.append(driver.call(*add))
        self.executable = driver.call("cuGraphInstantiate", self.graph, 0)
        self.readers: dict[int, list[int]] = {}
        for node, read in enumerate(words):
            for word in {*read}:
                self.readers.setdefault(word, []).append(node)
        self.stale: set[int] = set()

    def note(self, changed: Sequence[int]) -> None:
        """Note that words of the table changed."""
        for word in changed:
            self.stale.update(self.readers.get(word, ()))

    def launch(self, stream: Any) -> None:
        """Launch all kernels on what the table holds now."""
        if self.stale:
            for node in self.stale:  # all of them again where an interrupt comes between
                self.give(node)
            self.stale.clear()
        (status,) = self.driver.module.cuGraphLaunch(self.executable, stream)
        if status:
            raise self.driver.error("cuGraphLaunch", status)

    def give(self, node: int) -> None:
        """Give a node its parameters again."""
        set_params = self.driver.module.cuGraphExecKernelNodeSetParams
        (status,) = set_params(self.executable, self.nodes[node], self.params[node])
        if status:
            raise self.driver.error("cuGraphExecKernelNodeSetParams", status)

    def __del__(self) -> None:
        """Leave the graph to the device: any thread may drop it, while the GPU still runs it."""
        if self.executable is not None:
            self.dropped.append(("cuGraphExecDestroy", self.executable))
        if self.graph is not None:
            self.dropped.append(("cuGraphDestroy", self.graph))


def node_params(driver: Driver, call: Call) -> Any:
    """Describe a launch as the driver wants it of a node."""
    found = driver.module.CUDA_KERNEL_NODE_PARAMS()
    found.func, found.gridDimX, found.blockDimX, found.sharedMemBytes, found.kernelParams = call
    found.gridDimY = found.gridDimZ = found.blockDimY = found.blockDimZ = 1
    return found


def chain_waits(count: int) -> list[tuple[int, ...]]:
    """Let each node wait for the one before."""
    return [(number - 1,) if number else () for number in range(count)]


def node_waits(
    launches: Sequence[TapeLaunch], blocks: Sequence[Sequence[int]]
) -> list[tuple[int, ...]]:
    """List for each launch that is a node the nodes it waits for.

    Kernels that share a workspace (`blocks`, by node) wait for each other too. Those without tasks
    are no nodes: what waits for them waits for what they wait for.
    """
    nodes: dict[int, set[int]] = {}  # by launch: those that stand for it
    users: dict[int, int] = {}  # of a workspace: the last one
    found: list[set[int]] = []
    for number, launch in enumerate(launches):
        before = range(number) if launch.waits is None else launch.waits
        waited = {node for each in before for node in nodes[each]}
        if not launch.executable.code.tasks:
            nodes[number] = waited
            continue
        for block in blocks[len(found)]:
            waited.update([users[block]] if block in users else [])
            users[block] = len(found)
        nodes[number] = {len(found)}
        found.append(waited)
    return direct(found)
