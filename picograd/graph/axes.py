"""Axes: which axes of a graph change their sizes together, found by comparing two recordings.

Two graphs of one structure, recorded with other sizes, differ in the sizes of some axes. An axis of
a leaf gives its size to the axes computed from it: `link` follows that op by op, and each set of
linked axes is a class (a union-find over the axes of all nodes). A class is dynamic if one of its
axes has another size in the two graphs, or comes from a dynamic one by a rule of sizes (a window).

A dynamic class is *plain*, its elements are the first n of an axis, or *composite*: a reshape
merged several axes, and what is valid is a pattern.

    (B, T, C) -reshape-> (B * T, C)     T dynamic: row r holds a value where r % T's bound < T

`NoRule` is raised, with a reason, where sizes change in a way that is not followed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from picograd.buffer import Buffer
from picograd.graph.node import Node, Nodes
from picograd.graph.row import MEMORY
from picograd.graph.shape import Shape, Window
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.number import GivenInt

Part = int | tuple[int]  # a factor of an axis: a fixed size, or the class of a dynamic one
Parts = tuple[Part, ...]
Group = tuple[tuple[int, ...], tuple[int, ...]]  # axes of the input, axes of the output
Derived = tuple[int, Node, int]  # an axis, the input whose axis gives its size, that axis


class Degenerate(Exception):
    """These sizes have a plan of their own, as an axis that varies has at most one element."""


class NoRule(Exception):
    """Sizes change where no rule follows them; the text says why."""


@dataclass(slots=True)
class Record:
    """What of a graph is compared with a later one: sizes, and arguments that hold sizes."""

    shapes: list[Shape]
    args: list[Any]
    sizes: list[int]  # of all axes


@dataclass(slots=True)
class Changes:
    """What differed between recordings: axes of nodes, and numbers in arguments."""

    axes: set[int] = field(default_factory=set)  # by number, of all axes of all nodes
    numbers: set[tuple[int, int]] = field(default_factory=set)  # of a const: axis -1
    partial: set[tuple[int, int]] = field(default_factory=set)  # axes a slice cuts

    def copy(self) -> "Changes":
        """Copy what was found."""
        return Changes(set(self.axes), set(self.numbers), set(self.partial))

    def size(self) -> int:
        """Count what was found: it grows when a recording brings something new."""
        return len(self.axes) + len(self.numbers) + len(self.partial)

    def compare(self, order: Nodes, first: Record) -> None:
        """Add how a graph differs from the first recording.

        Of what is known to vary nothing is asked: a size that is followed would be a guard.
        """
        at = 0
        for number, (node, shape, arg) in enumerate(zip(order, first.shapes, first.args)):
            for axis, (now, was) in enumerate(zip(node.shape, shape), at):
                if axis not in self.axes and now != was:
                    self.axes.add(axis)
            at += len(shape)
            if memory_of(node) is not None:
                continue
            rule = node.row.sizes
            if rule is not None and rule.compare is not None:
                rule.compare(self, number, node, arg)


def compare_const(changes: Changes, number: int, node: Node, arg: Any) -> None:
    """Find a number that is another."""
    if (number, -1) not in changes.numbers and not is_same_number(node.arg, arg):
        changes.numbers.add((number, -1))


def compare_pad(changes: Changes, number: int, node: Node, arg: Any) -> None:
    """Find where a pad puts its operand elsewhere."""
    for axis, ((low, _), (was, _)) in enumerate(zip(node.arg[0], arg[0])):
        known = (number, axis) in changes.numbers
        if not known and low != was and type(low) is not GivenInt:
            changes.numbers.add((number, axis))


def compare_slice(changes: Changes, number: int, node: Node, arg: Any) -> None:
    """Find which axes a slice cuts, and where it starts elsewhere."""
    source = node.inputs[0].shape
    for axis, (now, was) in enumerate(zip(node.arg, arg)):
        known = (number, axis) in changes.numbers
        if not known and now[0] != was[0] and type(now[0]) is not GivenInt:
            changes.numbers.add((number, axis))
        if (number, axis) in changes.partial:
            continue
        is_whole = (now[0], node.shape[axis], now[2]) == (0, source[axis], 1)
        if not (is_whole and was[:3] == (0, was[3], 1)):
            changes.partial.add((number, axis))


def is_degenerate(
    sizes: Sequence[int], was: Sequence[int], known: Iterable[int]
) -> tuple[bool, bool]:
    """Tell whether an axis that varies has at most one element now, and in the first recording.

    Such an axis is repeated where it meets others: what follows from it is another structure.
    So is what has no elements at all. `sizes` are those of all axes; `known` are axes that vary.
    """
    changed = [pair for pair in zip(sizes, was) if pair[0] != pair[1]]
    is_now = 0 in sizes or any(now < 2 for now, _ in changed)
    is_first = 0 in was or any(old < 2 for _, old in changed)
    return is_now or any(sizes[at] < 2 for at in known), is_first


def all_sizes(shapes: Iterable[Shape]) -> list[int]:
    """List the sizes of all axes."""
    return [size for shape in shapes for size in shape]


def is_same_number(a: Any, b: Any) -> bool:
    """Tell whether two constants are one; NaN is itself."""
    return (
        a.__class__ is b.__class__  # that of a traced number is the number's
        and (a == b or (a != a and b != b))
        and str(a) == str(b)
    )


def memory_of(node: Node) -> Buffer | None:
    """Find the memory of a leaf or of a computed node; None for a node still to compute."""
    if node.realized is not None or node.op not in MEMORY:
        return node.realized
    return node.arg.buffer


def record(order: Nodes) -> Record:
    """Note the sizes of a graph; a slice's ranges with the sizes they cut."""
    args: list[Any] = []
    for node in order:
        note = None if node.row.sizes is None else node.row.sizes.note
        args.append(None if note is None or memory_of(node) is not None else note(node))
    shapes = [node.shape for node in order]
    return Record(shapes, args, all_sizes(shapes))


def note_argument(node: Node) -> Any:
    """Note an argument as it is."""
    return node.arg


def note_slice(node: Node) -> Any:
    """Note the ranges of a slice with the sizes they cut."""
    return tuple((*cut, size) for cut, size in zip(node.arg, node.inputs[0].shape))


class Axes:
    """This class is the classes of the axes of one graph; see the module docstring."""

    def __init__(self, order: Nodes, first: Record, changes: Changes) -> None:
        self.order: Nodes = order
        self.first: Record = first
        self.changes: Changes = changes
        self.numbers: dict[int, int] = {id(node): number for number, node in enumerate(order)}
        self.bases: list[int] = []
        count = 0
        for node in order:
            self.bases.append(count)
            count += len(node.shape)
        self.parents: list[int] = list(range(count))
        self.histories: dict[int, Node] = {}  # the first one of each loop
        self.opaque: list[Node] = []  # of ops that no rule follows: nothing of them may vary
        self.sizes: list[int] = [size for node in order for size in node.shape]
        for node in order:
            self.link_node(node)
        self.dynamic: set[int] = set()
        self.parts: dict[int, Parts] = {}  # of composite classes
        self.find_dynamic()
        for node in self.opaque:
            if any(map(self.dynamic_axes, (node, *node.inputs))):
                raise NoRule(f"{node.op} has sizes that are fixed")
        self.find_parts()
        self.check_sizes()

    def check_sizes(self) -> None:
        """Raise NoRule where an axis has another size than its class, or than its factors give."""
        for node in self.order:
            for axis, size in enumerate(node.shape):
                if self.is_dynamic(node, axis):
                    if size < 2:
                        raise Degenerate
                    parts = self.parts_of(node, axis)
                    own = (self.sizes[p[0]] if isinstance(p, tuple) else p for p in parts)
                    if product(own) != size:
                        raise NoRule("axes of one size in other recordings differ")

    def find(self, node: Node, axis: int) -> int:
        """Find the class of an axis."""
        return self.root(self.bases[self.numbers[id(node)]] + axis)

    def root(self, at: int) -> int:
        """Find the class of an axis by its number; shortens the path."""
        parents = self.parents
        while parents[at] != at:
            parents[at] = parents[parents[at]]
            at = parents[at]
        return at

    def link(self, a: Node, axis: int, b: Node, other: int) -> None:
        """Say that two axes have one size for the same reason."""
        self.join(self.find(a, axis), self.find(b, other))

    def link_all(self, a: Node, b: Node, skipped: Sequence[int] = ()) -> None:
        """Link all axes of two nodes of one rank."""
        for axis in range(len(a.shape)):
            if axis not in skipped:
                self.link(a, axis, b, axis)

    def link_node(self, node: Node) -> None:
        """Link the axes of a node with those of its inputs."""
        if node.realized is not None or not node.inputs:
            return
        row = node.row
        if row.is_elementwise:
            link_same(self, node)
        elif row.sizes is not None:
            row.sizes.link(self, node)
        else:
            self.opaque.append(node)

    def is_dynamic(self, node: Node, axis: int) -> bool:
        """Tell whether an axis has a size that varies."""
        return self.find(node, axis) in self.dynamic

    def dynamic_axes(self, node: Node) -> list[int]:
        """List the axes of a node that vary."""
        return [axis for axis in range(len(node.shape)) if self.is_dynamic(node, axis)]

    def find_dynamic(self) -> None:
        """Mark the classes that differ, and those that follow from them by a rule of sizes."""
        for axis in self.changes.axes:
            self.dynamic.add(self.root(axis))
        for _ in range(3):
            before = len(self.dynamic)
            for node in self.order:
                for axis, source, other in derived_axes(self, node):
                    if self.is_dynamic(source, other):
                        self.dynamic.add(self.find(node, axis))
            if len(self.dynamic) == before:
                break

    def find_parts(self) -> None:
        """Find the composite classes: what a reshape merges or splits, a dynamic factor inside."""
        joined = True
        while joined:
            joined = False
            self.dynamic = {self.root(found) for found in self.dynamic}
            self.parts = {}
            for node in [each for each in self.order if is_regrouping(each)] * 2:
                if node.realized is None:
                    joined = self.merge_all(node) or joined

    def merge_all(self, node: Node) -> bool:
        """Find the composite classes of one reshape; tells whether classes were joined."""
        source, joined = node.inputs[0], False
        for ins, outs in self.groups(node):
            if len(ins) == 1 and len(outs) > 1:
                factors = [self.parts_of(node, axis) for axis in outs]
                joined = self.merge(source, ins[0], factors) or joined
            elif len(outs) == 1 and len(ins) > 1:
                factors = [self.parts_of(source, axis) for axis in ins]
                joined = self.merge(node, outs[0], factors) or joined
        return joined

    def merge(self, node: Node, axis: int, factors: Sequence[Parts]) -> bool:
        """Say that an axis is merged of factors; with the dynamic one first it stays plain.

        What is merged and split again has its factors from both: they are joined.
        """
        parts = tuple(part for each in factors for part in each if part != 1)
        is_plain = not any(isinstance(part, tuple) for part in parts[1:])
        if is_plain or not self.is_dynamic(node, axis):
            return False
        known = self.parts.setdefault(self.find(node, axis), parts)
        if known == parts:
            return False
        if len(known) != len(parts) or any(
            isinstance(a, int) != isinstance(b, int) or (isinstance(a, int) and a != b)
            for a, b in zip(known, parts)
        ):
            raise NoRule("an axis is merged of several in two ways")
        for a, b in zip(known, parts):
            if isinstance(a, tuple) and isinstance(b, tuple):
                self.join(self.root(a[0]), self.root(b[0]))
        return True

    def join(self, first: int, second: int) -> None:
        """Make one class of two."""
        if first != second:
            self.parents[max(first, second)] = min(first, second)

    def parts_of(self, node: Node, axis: int) -> Parts:
        """List the factors of an axis."""
        found = self.find(node, axis)
        if found in self.parts:
            return self.parts[found]
        return ((found,),) if found in self.dynamic else (node.shape[axis],)

    def groups(self, node: Node) -> list[Group]:
        """Match the axes of a reshape with those of its input, in both recordings."""
        source = node.inputs[0]
        was_out = self.first.shapes[self.numbers[id(node)]]
        was_in = self.first.shapes[self.numbers[id(source)]]
        ins = [a for a in range(len(source.shape)) if (source.shape[a], was_in[a]) != (1, 1)]
        outs = [a for a in range(len(node.shape)) if (node.shape[a], was_out[a]) != (1, 1)]
        groups: list[Group] = []
        while ins or outs:
            left, right = ins[:1], outs[:1]
            while True:
                a = (product(source.shape[n] for n in left), product(was_in[n] for n in left))
                b = (product(node.shape[n] for n in right), product(was_out[n] for n in right))
                if a == b and left and right:
                    break
                takes_left = a < b if a[0] != b[0] else a[1] < b[1]
                if takes_left and len(left) < len(ins):
                    left = ins[: len(left) + 1]
                elif len(right) < len(outs):
                    right = outs[: len(right) + 1]
                else:
                    raise NoRule("a reshape of an axis that varies")
            groups.append((tuple(left), tuple(right)))
            ins, outs = ins[len(left) :], outs[len(right) :]
        return groups


def derived_axes(axes: Axes, node: Node) -> list[Derived]:
    """List axes whose sizes follow from those of an input."""
    rule = node.row.sizes
    if node.realized is not None or rule is None or rule.derived is None:
        return []
    return rule.derived(axes, node)


def is_regrouping(node: Node) -> bool:
    """Tell whether a node merges axes, or splits them."""
    rule = node.row.sizes
    return rule is not None and rule.is_regrouping


def derived_pad(axes: Axes, node: Node) -> list[Derived]:
    """Every axis."""
    return [(axis, node.inputs[0], axis) for axis in range(len(node.shape))]


def derived_slice(axes: Axes, node: Node) -> list[Derived]:
    """The axes of which one element in several is taken."""
    number, partial = axes.numbers[id(node)], axes.changes.partial
    cut = [axis for axis in range(len(node.shape)) if (number, axis) in partial]
    return [(axis, node.inputs[0], axis) for axis in cut if node.arg[axis][2] > 1]


def derived_window(axes: Axes, node: Node) -> list[Derived]:
    """The axes that count windows."""
    return [(window[0], node.inputs[0], window[0]) for window in node.arg]


def derived_fold(axes: Axes, node: Node) -> list[Derived]:
    """The axes that windows are added up to."""
    return [(window[0], node.inputs[0], window[0]) for window in node.arg[0]]


def derived_conv(axes: Axes, node: Node) -> list[Derived]:
    """The places, where the taps are as many as before."""
    x, weight = node.inputs
    found = range(3, len(node.shape))
    return [(axis, x, axis) for axis in found if not axes.is_dynamic(weight, axis)]


def derived_reshape(axes: Axes, node: Node) -> list[Derived]:
    """The axes that several are merged to."""
    return [
        (out, node.inputs[0], source)
        for ins, outs in axes.groups(node)
        for out in outs[:1]
        for source in ins
        if len(ins) > 1
    ]


# how the axes of one op are linked


def link_nothing(axes: Axes, node: Node) -> None:
    """The node chooses its sizes."""


def link_same(axes: Axes, node: Node) -> None:
    """All inputs have the axes of the node."""
    for source in node.inputs:
        axes.link_all(node, source)


def link_permute(axes: Axes, node: Node) -> None:
    """Follow a permutation."""
    for axis, source in enumerate(node.arg):
        axes.link(node, axis, node.inputs[0], source)


def link_expand(axes: Axes, node: Node) -> None:
    """Follow what is not repeated."""
    source = node.inputs[0]
    axes.link_all(node, source, [a for a, size in enumerate(source.shape) if size == 1])


def link_slice(axes: Axes, node: Node) -> None:
    """Follow the axes that a slice leaves whole."""
    number = axes.numbers[id(node)]
    skipped = [axis for axis in range(len(node.shape)) if (number, axis) in axes.changes.partial]
    axes.link_all(node, node.inputs[0], skipped)


def link_pad(axes: Axes, node: Node) -> None:
    """Follow the axes that a pad leaves whole."""
    was = axes.first.args[axes.numbers[id(node)]][0]
    pairs = zip(node.arg[0], was)
    skipped = [axis for axis, (now, old) in enumerate(pairs) if (now, old) != NO_PADS]
    axes.link_all(node, node.inputs[0], skipped)


NO_PADS = ((0, 0), (0, 0))


def link_window(axes: Axes, node: Node) -> None:
    """Follow the axes without windows."""
    link_beside(axes, node, node.arg)


def link_fold(axes: Axes, node: Node) -> None:
    """Follow the axes without windows."""
    link_beside(axes, node, node.arg[0])


def link_beside(axes: Axes, node: Node, windows: Window) -> None:
    """Follow the axes that windows leave as they are."""
    listed = [window[0] for window in windows]
    source = node.inputs[0]
    rank = min(len(node.shape), len(source.shape))
    for axis in range(rank):
        if axis not in listed:
            axes.link(node, axis, source, axis)


def link_reduce(axes: Axes, node: Node) -> None:
    """Follow the axes that stay."""
    source = node.inputs[0]
    kept = [axis for axis in range(len(source.shape)) if axis not in node.arg[1]]
    for axis, old in enumerate(kept):
        axes.link(node, axis, source, old)


def link_contract(axes: Axes, node: Node) -> None:
    """Follow the labels."""
    known: dict[int, tuple[Node, int]] = {}
    for each, labels in zip((*node.inputs, node), node.arg):
        for axis, label in enumerate(labels):
            other = known.setdefault(label, (each, axis))
            axes.link(each, axis, *other)


def link_conv(axes: Axes, node: Node) -> None:
    """Follow rows, groups and channels."""
    x, weight = node.inputs
    axes.link(node, 0, x, 0)
    axes.link(node, 1, x, 1)
    axes.link(weight, 0, x, 1)
    axes.link(weight, 1, node, 2)
    axes.link(weight, 2, x, 2)


def link_gather(axes: Axes, node: Node) -> None:
    """Follow the axes of the index, then those of the source that are not indexed."""
    source, *indices = node.inputs
    link_indexed(axes, node, source, indices, node.arg)


def link_scatter(axes: Axes, node: Node) -> None:
    """Follow the base, and its parts in the values."""
    base, values, *indices = node.inputs
    axes.link_all(node, base)
    link_indexed(axes, values, base, indices, node.arg[0])


def link_indexed(axes: Axes, part: Node, whole: Node, indices: Nodes, indexed: Shape) -> None:
    """Link what is read or written by an index with the index and with the whole."""
    width = len(indices[0].shape)
    for index in indices:
        for axis in range(width):
            axes.link(part, axis, index, axis)
    rest = [axis for axis in range(len(whole.shape)) if axis not in indexed]
    for number, axis in enumerate(rest):
        axes.link(part, width + number, whole, axis)


def link_reshape(axes: Axes, node: Node) -> None:
    """Follow the axes that stay as they are."""
    for ins, outs in axes.groups(node):
        if len(ins) == len(outs) == 1:
            axes.link(node, outs[0], node.inputs[0], ins[0])
