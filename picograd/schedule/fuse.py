"""fuse: decide which nodes share a kernel, in one walk over the nodes, inputs first.

    vertical    a cheap node floats: it is computed where it is read, by composing indices
    chain       a reduction over a value of a row joins the reductions it depends on
    epilogue    elementwise nodes on the domain of a group become members when they must be stored
    horizontal  reductions over one domain at one depth share a kernel (maps are merged later)

Every decision that keeps nodes apart adds a reason to `reasons`.
"""

from dataclasses import replace

from picograd.graph.row import OPS, Op, Role
from picograd.helpers import product
from picograd.schedule import joining, views
from picograd.schedule.channels_last import computed_order
from picograd.schedule.cost import (
    OPERATION_LIMIT,
    RowWork,
    machine,
    row_work,
    shared_work,
    window_work,
)
from picograd.schedule.group import (
    CHAIN_LIMIT,
    FREE,
    GROUP_LIMIT,
    LONE,
    Facts,
    Group,
    Labels,
    Reasons,
    identity_labels,
    is_long,
    place,
    waits_for_rows,
)
from picograd.schedule.pairing import Pairs
from picograd.schedule.pooling import join_windows
from picograd.schedule.readers import rows_of_taps
from picograd.schedule.recurrence import same_bytes, visit_loop
from picograd.schedule.repack import turns
from picograd.schedule.score_groups import visit_stream
from picograd.schedule.updates import values_before
from picograd.target import Target

MIXING_LIMIT = 6  # reshapes between permutations that one index goes through: its terms double
WINDOW_LIMIT = 64  # elements of a window that is reduced where it is read


class Fuser:
    """This class is the state of the walk; `fuse` runs it."""

    def __init__(self, target: Target) -> None:
        self.target, self.machine = target, machine(target)
        self.at_hand = replace(self.machine, launch=0.0)  # where no kernel more is needed
        self.groups: list[Group] = []
        self.reasons = Reasons()
        self.counts = joining.Counts()
        self.loops: dict[int, Group] = {}  # of the outcomes of each loop
        self.open: dict[tuple[object, ...], Group] = {}  # newest reduce group of a domain
        self.maps = joining.Maps()
        self.pairs, self.has_lone = Pairs(target), False  # channels that are convolved alone

    def visit(self, facts: Facts) -> None:
        """Collect the facts of one node; its inputs have theirs."""
        node, inputs, row = facts.node, facts.inputs, facts.node.row
        facts.size = node.size
        role = row.role
        if role is Role.WRITE and inputs:
            facts.inputs, facts.target, facts.memory = inputs[1:], inputs[0], inputs[0].memory
            facts.overwrites = inputs[0].number if inputs[0].is_source else -1
        if facts.is_source:
            facts.cost, facts.loads = 1, frozenset((facts.number,))
        elif facts.is_score or facts.stream is not None:
            visit_stream(self, facts)
        elif role is Role.ELEMENTWISE:
            self.visit_floating(facts, row)
        elif role is Role.VIEW:
            self.visit_view(facts)
        elif role is Role.REDUCE:
            count = product(node.inputs[0].shape[d] for d in node.arg[1])
            self.visit_reduce(facts) if count > 1 else self.visit_view(facts)
        elif row.hero:
            self.visit_hero(facts, row)
        elif role is Role.WRITE and node.arg is None:
            self.visit_assign(facts)
        elif role is Role.WRITE:
            self.visit_update(facts, inputs[0])
        elif role is Role.HOST:
            self.visit_host_call(facts)
        elif role is Role.LOOP:
            self.loops[facts.number] = visit_loop(self, facts)
        elif role is Role.RESULT:
            self.join(facts, self.loops[inputs[0].number], "hero", identity_labels(node.shape))
            facts.is_row_major = True
        else:
            self.visit_floating(facts, row)

    def store_root(self, facts: Facts) -> Facts:
        """Store a node the user wants; a reshape of it has the same bytes."""
        passed: list[Facts] = []
        while facts.node.row.is_same_bytes and not facts.is_loaded:
            passed.append(facts)
            facts = facts.inputs[0]
        self.store(facts, "it is an output")
        for view in passed:
            views.settle(view, facts)
        facts.is_output = not facts.is_source and facts.node.row.role is not Role.WRITE
        return facts

    def visit_view(self, facts: Facts) -> None:
        """A view costs nothing: its facts are those of its input, with dimensions moved."""
        node, source = facts.node, facts.inputs[0]
        row = node.row
        is_expanding = row.is_repeating and facts.size > source.size
        if is_expanding or (not row.is_showing and views.is_beside(facts)):
            self.share_expanded(source)
        if facts.is_multiplied and self.target.has_blocks and views.is_window(node):
            self.share_windows(source, rows_of_taps(facts))
        mapping = views.dimension_map(node)
        facts.depth, facts.home, facts.cost = source.depth, source.home, source.cost
        if source.labels is not None and mapping is not None:
            facts.labels = views.view_labels(facts, source, mapping)
        facts.is_grand = source.is_grand
        facts.is_rowed = waits_for_rows(source)
        is_regrouped = source.windows and row.is_same_bytes
        if source.order is not None and not is_regrouped:  # sums of windows leave channels nearest
            facts.order = views.view_order(node, source.order, mapping)
        if source.windows or row.is_shifting:
            facts.windows = views.view_windows(node, source, mapping)
        facts.loads = frozenset() if is_expanding else source.loads
        facts.length, facts.has_window = source.length + 1, source.has_window
        facts.is_moved = source.is_moved or (row.is_shifting and not source.is_loaded)
        facts.mixings = source.mixings + (mapping is None)
        if facts.length > CHAIN_LIMIT or facts.mixings > MIXING_LIMIT:
            self.store(facts, "a long chain of views")

    def share_expanded(self, source: Facts, most: int = OPERATION_LIMIT) -> None:
        """A value about to be repeated: compute it once, in its home group or on its own."""
        base = views.strip_views(source)
        if base.is_loaded or not base.node.inputs:
            return
        if (found := joining.find_place(base, self.target)) is not None:
            self.join(base, *found)
        elif base.cost > most or base.has_window:
            self.store(base, "it is expensive and repeated")
        views.settle(source, base)

    def share_windows(self, source: Facts, times: float) -> None:
        """What windows are about to multiply: compute it once, if each row of taps would again.

        Neighbours share what they read along the last axis (templates/sliding.py).
        """
        base, kernels = views.below_windows(source)
        if base.node.inputs:
            self.store_windowed(base, kernels, times)
        views.settle(source, base)

    def store_windowed(self, facts: Facts, kernels: int, times: float) -> None:
        """Store what so many kernels read in windows, if it would be computed too often."""
        known = facts.cost, len(facts.loads), facts.node.size, facts.node.dtype.itemsize
        work = window_work(kernels, times, known, self.machine)
        if times > 1 and work.is_stored:
            self.store(facts, f"windows of {times:.3g} rows, {work}")

    def visit_floating(self, facts: Facts, row: Op) -> None:
        """An elementwise node, a constant, a gather or a fold: computed where it is read."""
        node, role = facts.node, row.role
        if role is not Role.ELEMENTWISE or self.target.has_blocks:
            for source in views.shared_inputs(facts, self.target):
                self.share_expanded(source, views.most_repeated(node))
        self.summarize(facts)
        if role is Role.ELEMENTWISE or role is Role.PASS:
            views.merge_labels(facts)
        elif role is Role.GATHER:
            views.gather_labels(facts)
        if role is Role.FOLD:
            self.limit_window(facts, views.fold_count(node))
        if facts.tap_rows and self.target.has_blocks:  # before others note what it is made of
            self.store_windowed(facts, facts.kernels, facts.tap_rows)
        if facts.is_loaded or facts.has_pages:
            return
        if row.is_stored:
            self.store(facts, "contiguous was asked for")
        elif is_long(facts):
            self.store(facts, "its chain is long")
        elif facts.kernels > 1:
            if facts.is_repeated and facts.kernels * facts.cost > CHAIN_LIMIT:
                self.store(facts, "it would be computed at several places")
            elif views.is_made_operand(facts):
                self.store(facts, "operand of a product, and others read it")
            else:
                self.store_shared(facts)

    def summarize(self, facts: Facts) -> None:
        """Combine the facts of all inputs."""
        row, size, inputs = facts.node.row, facts.size, facts.inputs
        if row.role is Role.PASS:
            inputs = views.read_of(facts)
        cost, length, mixings, is_moved = row.cost, 0, facts.mixings, row.is_shifting
        together = self.counts.add(facts, cost)
        loads, order, has_window = facts.loads, facts.order, facts.has_window
        depth, home = facts.depth, facts.home
        for source in inputs:
            cost += source.cost
            if source.length > length:
                length = source.length
            if source.mixings > mixings:
                mixings = source.mixings
            is_moved |= source.is_moved
            has_window |= source.has_window
            if source.windows:
                facts.windows |= source.windows
            if source.loads is not loads and source.size * 2 >= size:
                loads = loads | source.loads if loads else source.loads
            if order is None and source.order is not None:
                order = source.order if len(source.order) == len(facts.node.shape) else None
            if source.depth > depth:
                depth, home = source.depth, source.home
            elif depth and source.depth == depth and source.home is not home:
                home = None
        facts.depth, facts.home = depth, home
        if home is not None:
            facts.is_rowed = any(waits_for_rows(x) for x in inputs if x.home is home)
        facts.cost, facts.length = min(cost, together), length + 1
        facts.loads, facts.order, facts.mixings, facts.is_moved = loads, order, mixings, is_moved
        facts.has_window = has_window

    def limit_window(self, facts: Facts, count: int) -> None:
        """Account for a window reduced where it is read; store what would be computed too often."""
        source = facts.inputs[0]
        base = views.strip_views(source)
        is_often = source.node.size > base.node.size and source.cost * count > CHAIN_LIMIT
        if not base.is_loaded and (is_often or (source.has_window and count > 1)):
            self.store(base, "a window reads it several times")
            views.refresh(facts)
            for other in facts.inputs:
                views.deepen(facts, other)
        facts.cost = (source.cost + 1) * max(count, 1)
        facts.has_window = source.has_window or count > 1
        facts.windows, facts.is_moved = frozenset(), True
        facts.labels = views.window_labels(facts, source)

    def store_shared(self, facts: Facts) -> None:
        """Store a value that several kernels read, if that is better than computing it in each.

        Sums over windows may come out otherwise in another kernel: they are rather stored.
        """
        node, made = facts.node, self.machine
        source = joining.narrower(facts)
        if source is not None:
            source.kernels = facts.kernels
            self.store_shared(source)  # it is widened where it is read: fewer bytes
            facts.loads, facts.has_window = frozenset(), False
            self.summarize(facts)
            views.merge_labels(facts)
            return
        found = joining.find_place(facts, self.target)
        if facts.has_window or found is not None:
            made = self.at_hand
        known = facts.kernels, facts.cost, len(facts.loads), node.size, node.dtype.itemsize
        work = shared_work(*known, made)
        if work.is_stored or (facts.has_window and facts.cost > OPERATION_LIMIT):
            self.store_at(found, facts, str(work))

    def store(self, facts: Facts, reason: str = "") -> None:
        """Make a floating node a member: of its home group if it fits, else of a group of maps."""
        if not facts.is_loaded:
            self.store_at(joining.find_place(facts, self.target), facts, reason)

    def store_at(self, found: joining.Place | None, facts: Facts, reason: str) -> None:
        """Make a floating node a member at a place of its home group, or of a group of maps."""
        if found is not None:
            return self.join(facts, *found)
        if reason:
            self.reasons.note(f"stored {facts.node.op} {facts.node.shape}: {reason}", facts.number)
        group = self.maps.group_of(facts, self.new_group)
        self.join(facts, group, "row", identity_labels(facts.node.shape))

    def new_group(
        self, kind: str, depth: int, shape: tuple[int, ...], reduced: tuple[int, ...], device: str
    ) -> Group:
        """Open a group."""
        group = Group(len(self.groups), kind, depth, shape, reduced, device)
        self.groups.append(group)
        return group

    def join(self, facts: Facts, group: Group, level: str, labels: Labels) -> None:
        """Make a node a member: from now on its readers load it, or refer to it."""
        self.counts.leave(facts)
        group.members.append(facts)
        group.has_window |= facts.has_window
        group.operations += facts.cost
        facts.group = facts.home = group
        facts.is_loaded = True
        facts.depth, facts.labels, facts.level = group.depth, labels, level
        facts.is_grand = level in ("grand", "scalar")
        facts.cost, facts.length, facts.is_moved, facts.has_window = 1, 0, False, False
        facts.mixings = 0
        facts.loads = frozenset((facts.number,))

    def visit_reduce(self, facts: Facts) -> None:
        """A reduction: over a window, at the end of a chain, beside others, or on its own."""
        node, source = facts.node, facts.inputs[0]
        axes = tuple(node.arg[1])
        count = product(source.node.shape[d] for d in axes)
        if axes and set(axes) <= source.windows and count <= WINDOW_LIMIT:
            self.summarize(facts)
            facts.order = views.reduced_order(source.order, axes)
            if (home := join_windows(facts, self.target, self.reasons)) is not None:
                self.join(facts, home, "pool", (facts.over or ())[: len(node.shape)])
                return
            self.limit_window(facts, count)
            if facts.kernels > 1:
                self.store_shared(facts)
            return
        self.summarize(facts)
        if source.has_window and (source.cost > OPERATION_LIMIT or self.target.has_blocks):
            self.store(views.strip_views(source), "windows below a reduction")
            views.refresh(facts)
        facts.windows = frozenset()
        facts.order = views.reduced_order(source.order, axes)
        if self.adopt(facts, axes) or self.chain(facts, axes) or self.sum_up(facts, axes):
            return
        work = self.work_on_rows(source, axes)
        # What works on rows again may read what a first kernel leaves: a count, a norm.
        depth = source.depth + 1 + (not source.depth and work.is_together and count < source.size)
        key = (source.node.shape, axes, depth, node.device)
        is_alone = self.target.has_blocks and views.reads_windows(source)
        group = None if is_alone else self.open.get(key)
        if group is None or group.is_half_full:
            group = self.new_group("reduce", depth, source.node.shape, axes, node.device)
            group.work, group.is_alone, self.open[key] = work, is_alone, group
        self.join(
            facts, group, "reduce", views.kept_labels(identity_labels(source.node.shape), axes)
        )

    def work_on_rows(self, source: Facts, axes: Labels) -> RowWork:
        """Estimate what it takes to work on the rows of a reduction again."""
        size = source.node.dtype.itemsize * max(len(source.loads), 1)
        return row_work(source.node.shape, axes, views.innermost(source), size, self.target)

    def adopt(self, facts: Facts, axes: Labels) -> bool:
        """Make the maps that the reduced value depends on part of its rows: they are stored from
        there, and what follows works on the same rows (a residual and its norm)."""
        source = facts.inputs[0]
        home, labels = source.home, source.labels
        if home is None or labels is None or not home.is_adoptable:
            return False
        placed = place(source.node.shape, labels, home)
        if placed is None or home.operations + source.cost > GROUP_LIMIT:
            return False
        work = self.work_on_rows(source, axes)
        reduced = {placed[1][d] for d in axes} - {FREE}
        is_again = work.takes(home.operations)
        is_apart = not reduced or turns(home, reduced, self.target)
        if is_apart or not (is_again or home.operations <= OPERATION_LIMIT):
            return False
        home.kind, home.work, home.reduced = "reduce", work, tuple(sorted(reduced))
        home.is_streamed = not is_again
        for member in home.members:
            member.level = "elem"
        facts.over = placed[1]
        self.join(facts, home, "reduce", views.kept_labels(facts.over, axes))
        return True

    def chain(self, facts: Facts, axes: tuple[int, ...]) -> bool:
        """Join the group the reduced value depends on, if that is no slower than another kernel."""
        source = facts.inputs[0]
        home, labels = source.home, source.labels
        if home is None or labels is None or home.kind != "reduce" or source.is_grand:
            return False
        placed = place(source.node.shape, labels, home)
        if placed is None or home.operations + source.cost > GROUP_LIMIT:
            return False
        level, facts.over = placed
        over = {facts.over[d] for d in axes if facts.over[d] != FREE}
        is_ready = joining.is_ready(facts, home, self.target)
        if level == "elem" and over == set(home.inner) and is_ready:
            self.join(facts, home, "reduce", views.kept_labels(facts.over, axes))
            return True
        if level == "row" and home.is_row and over == set(home.kept) and home.kept:
            self.join(facts, home, "grand", (FREE,) * len(facts.node.shape))
            return True
        facts.over = None
        why = "its source: the rows differ" if home.is_row else f"its source: {home.work}"
        self.reasons.note(f"kept reduce {source.node.shape} apart from {why}", *source.loads)
        return False

    def sum_up(self, facts: Facts, axes: tuple[int, ...]) -> bool:
        """Join the product whose result is reduced over all of its rows, or of its columns.

        Its tasks reduce the blocks they have in cache, and the last of them the results of all.
        """
        source = facts.inputs[0]
        found = joining.summed_places(facts, axes, self.target)
        if found is None or (home := source.home) is None:
            return False
        if views.innermost(source) in axes and self.work_on_rows(source, axes).is_together:
            return False  # what follows works on the rows again: a softmax, a norm
        home.summed, facts.over = found
        self.join(facts, home, "sums", views.kept_labels(facts.over, axes))
        return True

    def visit_hero(self, facts: Facts, row: Op) -> None:
        """Contractions, convolutions, scatters and copies read operands from memory, or pack what
        is cheap to compute."""
        node = facts.node
        for number, source in enumerate(facts.inputs):
            base, work = views.strip_views(source), joining.packed_work(facts, number, self.target)
            if base.node.inputs and (row.role not in LONE or source.has_window):
                if work is None or work.is_stored:
                    self.store(base, f"operand of {node.op}" + (f", {work}" if work else ""))
            elif joining.is_spread(base, node):
                self.store(source, "a convolution multiplies arrays")
            views.settle(source, base)
        if row.role is Role.COPY:
            self.store(facts.inputs[0], "copied to another device")
            facts.inputs[0].is_row_major = True
        depth = max([source.depth for source in facts.inputs], default=0) + 1
        if row.role is Role.SCATTER:
            init = self.new_group("map", facts.inputs[0].depth + 1, node.shape, (), node.device)
            init.members.append(facts)
            depth = max(depth, init.depth + 1)
        if row.role is Role.CONV:
            is_turned = views.strip_views(facts.inputs[0]).order is not None
            facts.order = computed_order(node, self.target, is_turned or self.has_lone)
        facts.cost = 4 + sum(each.cost for each in facts.inputs if not each.is_loaded)
        group = self.pairs.find(facts, depth)
        if group is None:
            depth = self.pairs.depth_of(facts, depth)
            group = self.new_group(row.hero, depth, node.shape, (), node.device)
        self.join(facts, group, "hero", identity_labels(node.shape))
        self.pairs.note(facts)

    def visit_host_call(self, facts: Facts) -> None:
        """The host reads and writes whole arrays, row-major."""
        given, node = facts.inputs, facts.node
        facts.inputs = tuple([same_bytes(source) for source in given])
        for source, base in zip(given, facts.inputs):
            self.store(base, f"the host reads it: {node.arg.name}")
            base.is_row_major = True
            views.settle(source, base)
        depth = max(base.depth for base in facts.inputs) + 1
        group = self.new_group("host", depth, node.shape, (), node.device)
        facts.cost, facts.is_row_major = 4, True
        self.join(facts, group, "hero", identity_labels(node.shape))

    def visit_assign(self, facts: Facts) -> None:
        """An assignment is a group of its own, so that it may run after all other readers.

        What reads it sees it as its memory lies, row-major.
        """
        self.summarize(facts)
        node, facts.order = facts.node, None
        group = self.new_group("map", facts.depth + 1, node.shape, (), node.device)
        self.join(facts, group, "row", identity_labels(node.shape))

    def visit_update(self, facts: Facts, base: Facts) -> None:
        """An assignment of a part: a group of its own over the part, after what wrote the rest."""
        node, op = facts.node, facts.node.arg.op
        for source in facts.inputs:
            if op and source.has_window:
                below = views.strip_views(source)
                self.store(below, f"operand of {op}")
                views.settle(source, below)
            for value in values_before(source, base, bool(op)):
                self.store(value, "it reads what is overwritten")
        self.summarize(facts)
        written = base.group.depth if base.group is not None else 0
        depth, shape = max(facts.depth, written) + 1, facts.inputs[0].node.shape
        group = self.new_group(OPS[op].hero if op else "map", depth, shape, (), node.device)
        self.join(facts, group, "hero" if op else "row", identity_labels(shape))
        facts.labels, facts.is_row_major, base.is_row_major = None, True, True
