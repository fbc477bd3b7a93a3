"""Lowering of assignments of parts (schedule/updates.py): stores to some elements of an array."""

from picograd.helpers import row_major
from picograd.schedule.group import Facts
from picograd.schedule.index import Axis, Indices, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Kernel, Part
from picograd.schedule.lower import KernelBuilder, Location, PartBuilder, flat_index
from picograd.schedule.normalize import normalize_part
from picograd.schedule.updates import place_of


def lower_update(member: Facts, part: PartBuilder, axes: tuple[Axis, ...], own: Indices) -> None:
    """Append the value of a part, stored where the part lies; or aside, as an array of its own."""
    part.bound = axes
    source, kernel = member.inputs[0], part.kernel
    body = part.value(source, own)
    aside = kernel.aside.get(member.number)
    place = kernel.locations[member.number] if aside is None else aside
    slot = kernel.slot(place.slot, body.dtype)
    kernel.stored.add(slot)
    at = own if aside is not None else place_of(member, own, part.position)
    index = flat_index(at, place.strides)
    part.computes.append(Compute(axes, (), None, body, body.dtype, (slot, index)))
    ref = Expr("ref", (), len(part.computes) - 1, body.dtype)
    part.available.setdefault(source.number, (own, ref))


def aside_kernel(member: Facts, source: Location, builder: KernelBuilder) -> Kernel:
    """Store a part whose value lies aside, in an array of its own."""
    shape, dtype = member.node.arg.shape, member.node.dtype
    axes = [Axis(f"a{d}", n) for d, n in enumerate(shape)]
    own = tuple(axis_index(axis) if axis.size != 1 else constant(0) for axis in axes)
    place = builder.locations[member.number]
    read, written = (builder.slot(source.slot, dtype), builder.slot(place.slot, dtype))
    builder.loaded.add(read)
    builder.stored.add(written)
    body = Expr("load", (), (read, flat_index(own, row_major(shape))), dtype)
    at = place_of(member, own, PartBuilder(builder, 0).position)
    store = (written, flat_index(at, place.strides))
    rows = tuple(axis for axis in axes if axis.size != 1)
    part = normalize_part(Part(rows, (Compute(rows, (), None, body, dtype, store),)))
    name = "_".join(["map", "put", "x".join(map(str, shape)) or "1"])
    scalars = tuple(dtype for _, dtype in builder.scalars.values())
    return Kernel(name, "map", builder.finish(), scalars, (part,))
