"""Room: what no memory can hold is refused where its size becomes known, before any work.

Sizes are free to write and a graph of them costs nothing, so a wrong one would otherwise show late:
as a kernel that never ends, as a list of a billion pieces, or as the end of the process.

    check_values  a tensor's elements: when recorded, and every value of a plan, stored or not
    check_pieces  the Python objects that one call makes
    check_host    the numbers of a table that is made on the host
"""

import os
from collections.abc import Iterable
from math import prod

from picograd.errors import OutOfMemoryError
from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.graph.shape import Shape

ABSURD = 1 << 40  # bytes of a tensor; index arithmetic and launch limits are made for less
CLEARLY_FINE = ABSURD >> 4  # elements that are fewer bytes in every dtype
PIECES = 1 << 22  # tensors that one call may make: seconds of work and gigabytes of objects
TABLE_BYTES = 32  # per number of a host table: float64, and the steps on the way to it


def check_size(op: str, shape: Shape, itemsize: int = 4, device: str = "") -> None:
    """Raise OutOfMemoryError for a shape that no device holds; "meta" has shapes alone."""
    nbytes = prod(shape) * itemsize
    if nbytes >= ABSURD and device != "meta":
        text = f"a tensor of shape {described(shape)} takes {gibibytes(nbytes)}: no device has that"
        raise OutOfMemoryError(op, text, "use smaller sizes")


def check_recorded(node: Node) -> None:
    """Raise OutOfMemoryError for a recorded value that no device holds; views may be that large."""
    if prod(node.shape) <= CLEARLY_FINE:
        return
    row = node.row
    if not row.is_showing and row.role is not Role.GATHER:
        check_size(node.op, node.shape, node.dtype.itemsize, node.device)


def check_values(nodes: Iterable[Node]) -> None:
    """Raise OutOfMemoryError for a value of a plan that no device holds, or that reads one.

    Fused or not: a loop over it would not end. A window may show an element often.
    """
    for node in nodes:
        if node.row.is_showing:
            continue
        check_size(node.op, node.shape, node.dtype.itemsize)
        for source in node.inputs:
            if source.op != "window":
                check_size(node.op, source.shape, source.dtype.itemsize)


def check_pieces(op: str, count: int, what: str = "tensors") -> None:
    """Raise OutOfMemoryError for a call that would make more objects than fit."""
    if count > PIECES:
        text = f"the call would make {shortened(count)} {what}, at most {PIECES} fit"
        raise OutOfMemoryError(op, text, "ask for fewer and larger ones")


def check_host(op: str, count: int) -> None:
    """Raise OutOfMemoryError for a table of numbers that the host cannot make."""
    if count * TABLE_BYTES > host_bytes():
        text = f"a table of {shortened(count)} numbers does not fit the memory of the host"
        raise OutOfMemoryError(op, text, "use smaller sizes")


def host_bytes() -> int:
    """Count the bytes of the host's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return 1 << 34


def gibibytes(nbytes: int) -> str:
    """Print a huge number of bytes."""
    return f"{shortened(nbytes >> 30)} GiB"


def shortened(count: int) -> str:
    """Print a count; one of many digits by its magnitude."""
    return str(count) if count < 10**18 else f"about 10**{len(str(count)) - 1}"


def described(shape: Shape) -> str:
    """Print a shape, the first few sizes of one of many axes."""
    shown = ", ".join(map(shortened, shape[:8]))
    return f"({shown}, ...)" if len(shape) > 8 else f"({shown}{',' * (len(shape) == 1)})"
