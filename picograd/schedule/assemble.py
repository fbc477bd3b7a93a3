"""assemble: lower the groups of one launch to a Loop IR kernel.

ends: where all that a kernel stores ends, as conditions on its axes.
"""

from collections.abc import Iterable
from itertools import chain

from picograd.dtype import accumulate_dtype, int32
from picograd.errors import check
from picograd.graph.bounded import End, ends_of
from picograd.graph.node import is_move
from picograd.graph.row import WRITES, Role
from picograd.late_methods import dataclass
from picograd.schedule.arrange import Launch
from picograd.schedule.cost import SHORT_RUN
from picograd.schedule.group import (
    AFTER,
    FREE,
    OWN,
    PRODUCTS,
    Facts,
    Group,
    Labels,
    identity_labels,
    is_stored,
)
from picograd.schedule.heroes import contract_operands, conv_operands, scatter_places
from picograd.schedule.index import Axes, Axis, Index, Indices, axes_of, axis_index, constant
from picograd.schedule.loop import (
    Compute,
    Condition,
    Expr,
    Kernel,
    Part,
    Scatter,
    const,
    dynamics_of,
    has_load,
    walk,
)
from picograd.schedule.lower import KernelBuilder, PartBuilder, apply, as_index, flat_index
from picograd.schedule.monoid import identity
from picograd.schedule.normalize import normalize_part
from picograd.schedule.pooling import computed_sizes, inside_windows, pooled_domain
from picograd.schedule.rowwise import (
    lower_bins,
    lower_elimination,
    lower_radix,
    lower_runs,
    lower_scan,
    lower_sort,
)
from picograd.schedule.score_epilogues import following
from picograd.schedule.score_lowering import stream_computes
from picograd.schedule.updates import lower_update, place_of

Placed = tuple[int, End]  # a dimension of the domain, and an end along it


def place_ends(member: Facts) -> list[Placed]:
    """Say along which dimensions of its domain a member ends, and where, in one order."""
    labels = member.labels or ()
    axes = range(len(labels))
    ends = [end for end in ends_of(member.node) if end.axis in axes]
    found = [(labels[end.axis], end) for end in ends]
    return [(label, End(0, end.step, end.size, end.count)) for label, end in found if label != FREE]


def common_ends(stored: Iterable[Facts]) -> list[Placed]:
    """List the ends along dimensions that all members stored along them share."""
    members = [(set(member.labels or ()), place_ends(member)) for member in stored]
    every = dict.fromkeys(placed for _, own in members for placed in own)
    return [
        placed
        for placed in every
        if all(placed in own or placed[0] not in labels for labels, own in members)
    ]


def is_left_out(end: Condition, computes: Iterable[Compute]) -> bool:
    """Tell whether every reduction along the axes of an end has it as a guard."""
    axes = axes_of(end[0])
    for compute in computes:
        if not axes.isdisjoint(compute.reduce):
            body = compute.body
            if body.op != "guard" or end not in body.arg:
                return False
    return True


Domain = dict[int, Index]


@dataclass(frozen=True, slots=True)
class Space:
    """Where the members of a group are computed: an index for each dimension of its domain."""

    domain: Domain
    rows: Axes
    inner: Axes  # inside rows
    after: Domain  # with windows in place of what they are of
    inside: Domain  # of windows


def assemble(launch: Launch, builder: KernelBuilder) -> Kernel | None:
    """Build the kernel of a launch; None if there is nothing to compute."""
    parts = []
    for groups in launch.parts:
        part = lower_part(groups, builder)
        if part is not None:
            parts.append(normalize_part(part))
    if not parts:
        return None
    hero = hero_of(launch.kind, next(filter(has_reduction, parts), parts[0]))
    if launch.kind in PRODUCTS and any(map(multiplies, parts)):
        hero = launch.kind  # though one part shows nothing but zeros around an array
    scalars = tuple(dtype for _, dtype in builder.scalars.values())
    return Kernel(name_of(hero, launch), hero, builder.finish(), scalars, tuple(parts))


def head_of(launch: Launch) -> tuple[str, tuple[int, ...]]:
    """What a launch is called by: what the last member of its first group computes, its shape."""
    group = launch.parts[0][0]
    last = [m for m in group.members if m.level not in (*AFTER, "column")][-1]
    node = member = last.node
    while node.realized is None and node.inputs and (node.row.role is Role.PASS or is_move(node)):
        node = node.inputs[0]  # it has all elements of its input: its name says nothing
    shape, op = member.shape, "buffer" if node.realized is not None else node.op
    if last.is_update:
        shape, op = group.shape, "put"
    return op, shape


def name_of(hero: str, launch: Launch) -> str:
    """A readable kernel name: the hero, what it computes, and the shape of that."""
    (op, shape), words = head_of(launch), hero.split(".")
    if op not in words:
        words.append(op)
    many = [f"{len(launch.parts)}parts"] if len(launch.parts) > 1 else []
    return "_".join([*words, "x".join(map(str, shape)) or "1", *many])


def lower_part(groups: list[Group], builder: KernelBuilder) -> Part | None:
    """Lower groups that share one iteration space."""
    group = groups[0]
    letters = "abcdefgh" if group.kind != "reduce" else "ijklmnpq"
    sizes = computed_sizes(group)
    axes = {d: Axis(f"{letters[d % 8]}{d}", sizes[d]) for d, n in enumerate(group.shape) if n != 1}
    part = PartBuilder(builder, group.depth)
    if group.kind in LONE_PARTS:
        part.is_final = True
        hero = group.members[0]
        has_elements = all(each.node.size for each in (hero, *hero.inputs))
        return LONE_PARTS[group.kind](hero, part) if has_elements else None
    if any(axes[d].size == 0 for d in group.kept):
        return None
    space = space_of(group, axes)
    domain, rows = space.domain, space.rows
    members = in_order(groups)
    if members[0].stream is not None:
        return lower_stream(members, part)
    for member in members:
        if member.is_update:
            lower_update(member, part, rows, indices_for(identity_labels(group.shape), domain))
        else:
            lower_member(member, part, space)
    return Part(rows, tuple(part.computes), ends=part_ends(members, part, domain))


def space_of(group: Group, axes: dict[int, Axis]) -> Space:
    """Give each dimension of a group its index."""
    domain = {d: axis_index(axis) for d, axis in axes.items()}
    rows = axes_over(group.kept, domain)
    inner = tuple(axes[d] for d in group.inner)
    return Space(domain, rows, inner, pooled_domain(group, domain), inside_windows(group))


def lower_stream(members: list[Facts], part: PartBuilder) -> Part:
    """Lower what streams over scores."""
    every: list[set[Condition]] = []
    finished = chain(stream_computes(members, part), following(members, part))
    for member, compute, own in finished:
        finish_member(member, part, compute, own)
        every.append({part.test_of(end, own[end.axis]) for end in ends_of(member.node)})
    ends = sorted(set.intersection(*every), key=repr)
    return Part(members[0].stream.rows, tuple(part.computes), ends=tuple(ends))


def in_order(groups: Iterable[Group]) -> list[Facts]:
    """List the members of groups as they are computed.

    Assignments last: what reads the old values must come before. `arrange` ordered those.
    """
    members = [m for group in groups for m in group.members]
    others = [m for m in members if m.node.op not in WRITES]
    others.sort(key=lambda m: m.number)
    return others + [m for m in members if m.node.op in WRITES]


def part_ends(members: list[Facts], part: PartBuilder, domain: Domain) -> tuple[Condition, ...]:
    """Say where all that a part stores ends."""
    if any(member.is_update for member in members):
        return ()
    found = []
    for placed in common_ends(member for member in members if is_stored(member)):
        if placed[0] in domain:
            end = part.test_of(placed[1], domain[placed[0]])
            found += [end] if is_left_out(end, part.computes) else []
    return tuple(found)


def axes_over(places: Iterable[int], domain: Domain) -> Axes:
    """List the axes of some dimensions of a domain."""
    return tuple(
        axis for d in places for axis in sorted(axes_of(domain[d]), key=lambda each: each.number)
    )


def indices_for(labels: Labels, domain: Domain) -> Indices:
    """Indices of a node placed in the domain by `labels`."""
    return tuple(constant(0) if label == FREE else domain[label] for label in labels)


def lower_member(member: Facts, part: PartBuilder, space: Space) -> None:
    """Append the computes of one member and make its value available to later ones."""
    rows, inner = space.rows, space.inner
    own = indices_for(member.labels or (), space.domain)
    if member.node.row.role is Role.SCATTER:  # the base: the updates are a launch of their own
        lower_map(member, part, rows, own)
    elif member.level == "reduce":
        lower_reduce(member, part, space, rows, inner, own)
    elif member.level == "grand":
        lower_reduce(member, part, space, (), rows, own)
    elif member.level == "hero":
        lower_contraction(member, part, rows, own)
    elif member.level == "column" and member.node.row.role is Role.REDUCE:
        lower_reduce(member, part, space, inner, rows, own)
    elif member.level in AFTER and member.group is not None:
        lower_after(member, member.group, part, space)
    else:
        axes = {"elem": rows + inner, "row": rows, "scalar": (), "column": inner}[member.level]
        lower_map(member, part, axes, own)


def lower_after(member: Facts, group: Group, part: PartBuilder, space: Space) -> None:
    """Append a reduction of a product's result, or what is computed of those."""
    own, axes = indices_for(member.labels or (), space.after), axes_over(group.after, space.after)
    if member.level == "sums":
        lower_reduce(member, part, space, axes, axes_over(group.summed, space.domain), own)
    elif member.level == "pool":
        lower_reduce(member, part, space, axes, axes_over(space.inside, space.inside), own)
    else:
        lower_map(member, part, axes, own)


def lower_map(member: Facts, part: PartBuilder, axes: Axes, own: Indices) -> None:
    """Append a value computed at every point of `axes`: of an assignment or scatter its source."""
    part.bound = axes
    if member.node.row.role in OWN:
        body = part.value(member.inputs[0], own)
    else:
        body = part.build(member, own)
    compute = Compute(axes, (), None, body, body.dtype)
    finish_member(member, part, compute, own)
    if member.node.op in WRITES:
        # The target is overwritten by now: later members refer to the value instead.
        part.available.setdefault(member.inputs[0].number, part.available[member.number])


def lower_reduce(
    member: Facts, part: PartBuilder, space: Space, axes: Axes, over: Axes, own: Indices
) -> None:
    """Append a reduction; 16-bit floats are summed in float32."""
    node, source = member.node, member.inputs[0]
    monoid = node.arg[0]
    wide = accumulate_dtype(node.dtype) if monoid in ("sum", "prod") else node.dtype
    part.bound = axes + over
    if any(axis.size == 0 for axis in over):
        body = const(identity(monoid, wide), wide)
        finish_member(member, part, Compute(axes, (), None, body, wide), own)
        return
    labels = source_labels(member, space, axes + over)
    tests = part.tests_of_source(node, 0, labels)
    fill = const(identity(monoid, source.node.dtype), source.node.dtype)
    body = part.guarded(source, labels, tests, fill)
    if body.op == "guard" and tests:
        value = apply("cast", body.args[:1], wide)
        body = Expr("guard", (value, const(identity(monoid, wide), wide)), body.arg, wide)
    body = apply("cast", (body,), wide)
    finish_member(member, part, Compute(axes, over, monoid, body, wide), own)


def source_labels(member: Facts, space: Space, bound: Iterable[Axis]) -> Indices:
    """Indices of a reduction's input: kept dimensions as the member's, the others in order.

    In a chain the input may be a permuted value: fusion noted where its dimensions lie.
    """
    domain = space.domain
    if member.level == "pool":
        rank, places = len(member.labels or ()), member.over or ()
        own = indices_for(places[:rank], space.after)
        return own + tuple(space.inside.get(label, constant(0)) for label in places[rank:])
    if member.over is not None:
        return indices_for(member.over, domain)
    node, source = member.node, member.inputs[0].node
    kept = list(member.labels or ())
    used = {label for label in kept if label != FREE}
    axes = set(bound)
    spare = [i for d, i in domain.items() if d not in used and i.terms[0][0] in axes]
    found: list[Index] = []
    for d, size in enumerate(source.shape):
        if d not in node.arg[1]:
            label = kept.pop(0)
            found.append(constant(0) if label == FREE else domain[label])
        else:
            found.append(spare.pop(0) if size != 1 else constant(0))
    return tuple(found)


def lower_contraction(member: Facts, part: PartBuilder, rows: Axes, own: Indices) -> None:
    """Append sum over k of a * b; 16-bit floats are multiplied and summed in float32."""
    node = member.node
    wide = accumulate_dtype(node.dtype)
    operands = conv_operands if node.row.role is Role.CONV else contract_operands
    a, b, over = operands(node, own)
    part.bound = rows + over
    if any(axis.size == 0 for axis in over):
        body = const(0, wide)
        finish_member(member, part, Compute(rows, (), None, body, wide), own)
        return
    fill = const(0, node.dtype)
    tests = part.tests_of_source(node, 0, a[0]), part.tests_of_source(node, 1, b)
    left = part.guarded(member.inputs[0], a[0], a[1] + tests[0], fill)
    right = part.guarded(member.inputs[1], b, tests[1], fill)
    args = (apply("cast", (left,), wide), apply("cast", (right,), wide))
    body = Expr("mul", args, None, wide)
    finish_member(member, part, Compute(rows, over, "sum" if over else None, body, wide), own)


def finish_member(member: Facts, part: PartBuilder, compute: Compute, own: Indices) -> None:
    """Append a compute and what stores it; later members refer to the value."""
    dtype = member.node.dtype
    kernel = part.kernel
    target = kernel.aside.get(member.number, kernel.locations.get(member.number))
    if not is_stored(member):
        target = None
    store = None
    if target is not None:
        slot = part.kernel.slot(target.slot, dtype)
        part.kernel.stored.add(slot)
        store = (slot, part.place(own, target.strides))
    is_direct = compute.dtype is dtype
    parts = (compute.axes, compute.reduce, compute.monoid, compute.body, compute.dtype)
    part.computes.append(Compute(*parts, store if is_direct else None))
    ref = Expr("ref", (), len(part.computes) - 1, compute.dtype)
    value = apply("cast", (ref,), dtype)
    if store is not None and not is_direct:
        part.computes.append(Compute(compute.axes, (), None, value, dtype, store))
        value = Expr("ref", (), len(part.computes) - 1, dtype)
    part.available[member.number] = (own, value)


def lower_scatter(member: Facts, part: PartBuilder) -> Part:
    """Lower a scatter: the base is in the slot already."""
    node, shape = member.node, member.node.shape
    updates, *rest = member.inputs if member.is_update else member.inputs[1:]
    axes, monoid = node.arg.arg if member.is_update else node.arg
    indices, inside = rest[: len(axes)], rest[len(axes) :]
    if member.is_update:
        shape = node.arg.shape
    place = part.kernel.locations[member.number]
    rank = len(indices[0].node.shape)
    own = [Axis(f"u{d}", n) for d, n in enumerate(updates.node.shape)]
    at = tuple(axis_index(axis) for axis in own)
    part.bound = tuple(own)
    positions = [part.value(index, at[:rank]) for index in indices]
    is_wanted = [part.value(each, at[:rank]) for each in inside]
    tests = tuple((as_index(apply("cast", (each,), int32), 2), 1, 1) for each in is_wanted)
    places = scatter_places(shape, axes, positions, at[rank:])
    target = flat_index(place_of(member, places, part.position), place.strides)
    body = part.value(updates, at)
    check(not part.computes, "a window below a scatter must be stored", node)
    slot = part.kernel.slot(place.slot, node.dtype)
    part.kernel.loaded.add(slot)
    part.kernel.stored.add(slot)
    serial = tuple(axis for axis in own[:rank] if axis.size != 1)
    inner = tuple(axis for axis in own[rank:] if axis.size != 1)
    step = Scatter(serial, inner, monoid, body, slot, target, tests)
    return Part((), (), step)


LONE_PARTS = {  # by hero
    "scatter": lower_scatter,
    "runs": lower_runs,
    "scan": lower_scan,
    "sort": lower_sort,
    "radix": lower_radix,
    "eliminate": lower_elimination,
    "rotate": lower_elimination,
    "bins": lower_bins,
}


def hero_of(kind: str, part: Part) -> str:
    """Name the template: a reduction is a row or a column one by what is contiguous in memory."""
    across = set(part.rows)
    along = [c for c in part.computes if c.reduce and across.isdisjoint(c.reduce)]
    first = next((c for c in (*along, *part.computes) if c.reduce), None)
    if kind in LONE_PARTS or kind == "attention":
        return kind
    if first is None:
        return "map"
    if kind == "map" or (kind != "reduce" and is_product(first)):
        return kind
    if not part.rows:
        return "reduce.row" if is_chain(part) else "reduce.all"
    least = SHORT_RUN if is_chain(part) else 1
    # those that read memory themselves, not only values made before them
    loadless: set[int] = set()
    loading = [c.body for c in along if has_load(c.body, loadless)]
    bodies = loading if has_load(first.body) else [c.body for c in part.computes]
    return "reduce.row" if is_row_contiguous(bodies, first.reduce, least) else "reduce.col"


def has_reduction(part: Part) -> bool:
    """Tell whether a part reduces; maps may stand beside it."""
    return any(compute.reduce for compute in part.computes)


def multiplies(part: Part) -> bool:
    """Tell whether what a part reduces first is a product of arrays."""
    first = next((c for c in part.computes if c.reduce), None)
    return first is not None and is_product(first)


def is_product(compute: Compute) -> bool:
    """Tell whether both factors of a contraction are arrays; a constant one leaves a plain sum."""
    factors = compute.body.args
    return len(factors) == 2 and all(map(has_load, factors))


def is_chain(part: Part) -> bool:
    """Tell whether elements of a row are read again after the row was reduced."""
    rows = set(part.rows)
    for compute in part.computes:
        has_inner = not {*compute.axes, *compute.reduce} <= rows
        refs = (expr.arg for expr in walk(compute.body) if expr.op == "ref")
        if has_inner and any(set(part.computes[n].axes) <= rows for n in refs):
            return True
        if not compute.reduce and has_inner and compute.store:
            return True
    return False


def is_row_contiguous(bodies: Iterable[Expr], over: Iterable[Axis], least: int = 1) -> bool:
    """Tell whether the unit-stride axis of the largest loads is a reduced one, or a short one."""
    votes = {True: 0, False: 0}
    reduced = set(over)
    exprs = [expr for body in bodies for expr in walk(body)]
    places: set[int] = set()  # of what is read to know where to read
    for expr in exprs:
        for dynamic in dynamics_of(expr.arg[1]) if expr.op == "load" else ():
            places.update(map(id, walk(dynamic.expr)))
    for expr in exprs:
        if expr.op == "load" and id(expr) not in places:
            for atom, c in expr.arg[1].terms:
                if c == 1 and isinstance(atom, Axis):
                    is_row = atom in reduced or atom.size < least
                    votes[is_row] += 1 + len(expr.arg[1].terms)
    return votes[True] >= votes[False]
