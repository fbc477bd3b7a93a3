"""Statements about memory: views that stay, writes through them, indices, narrow dtypes.

As in `vocabulary`, each draws its arguments and returns its text; `{x}` is the operand, `{y}` a
second one. Here a text runs with the dtypes it names, so values are compared dtype by dtype.
"""

from collections.abc import Sequence

from drawing import Draw
from vocabulary import Shape, Statement, fixed, one_axis, reshape

DTYPES = (
    "float32", "float32", "float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool",
    "float16", "bfloat16",
)  # fmt: skip

# Reads that jump where rounding may cross a point: only exact operands are taken.
JUMPS = (
    "{x} < {y}", "{x} >= {y}", "{x} == {y}", "{x} != 1", "{x} // 2", "{x} % 3", "{x} // {y}",
    "{x} % {y}", "{x}.sign()", "({x} > 0) & ({y} < 1)", "({x} > 0) | ({y} > 2)",
    "{x}.logical_not()", "lib.where({x} > 0, {x}, {y})", "lib.where({x} > {y}, {x}, 0)",
    "{x}.masked_fill({x} > 1, 2)", "{x}.any()", "{x}.all()", "({x} > 0).sum()", "~{x}",
    "{x} & {y}", "{x} | 5", "{x} ^ {y}", "{x} << 1", "{x} >> 1", "{x}.count_nonzero()",
)  # fmt: skip
SMOOTH = (
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} + 1", "3 - {x}", "{x} * 2", "-{x}", "{x}.abs()",
    "{x} + 0.5", "{x} * 1.5", "{x} / 2", "{x}.square()", "{x}.clamp(-2, 3)", "{x}.clamp(min=1)",
    "lib.maximum({x}, {y})", "lib.minimum({x}, {y})", "{x}.relu()", "{x}.clone()", "{x}.sin()",
    "{x}.sigmoid()", "{x} ** 2", "{x}.tanh() + {y}", "{x}.contiguous()", "{x} @ {y}",
    "{x} + {x}.sum()", "lib.zeros_like({x})", "{x}.new_ones({x}.shape)",
)  # fmt: skip
# What has a shape that depends on values cannot be jitted.
DEPENDENT = (
    "{x}[{x} > 0]", "{x}.masked_select({x} != 1)", "{x}[{y}]", "({x} > 0).nonzero()",
    "{x}[{x} != {x}]", "{x}[({x} > 0), ...]",
)  # fmt: skip
SCALAR_WRITES = (
    "{x}.add_(1)", "{x}.sub_(1)", "{x}.mul_(2)", "{x}.fill_(3)", "{x}.zero_()", "{x}.neg_()",
    "{x}.abs_()", "{x}.clamp_(0, 2)", "{x}.relu_()", "{x}.square_()", "{x} += 1", "{x} *= 3",
    "{x} -= 2", "{x}[...] = 2", "{x}[:] = 1", "{x}.fill_(True)", "{x}.div_(2)", "{x} += 0.5",
    "{x}.add_({x})", "{x} *= {x}", "{x}.copy_({x} + 1)", "{x}.sin_()", "{x}.add_({x}.sum())",
    "lib.realize({x})", "lib.realize({x}, {y})",
)  # fmt: skip
WRITES = (
    "{x}.add_({y})", "{x}.sub_({y})", "{x}.mul_({y})", "{x}.copy_({y})", "{x} += {y}",
    "{x} -= {y}", "{x} *= {y}", "{x}[...] = {y}", "{x}[0] = {y}", "{x}[-1] += {y}",
    "{x}[1:] = {y}", "{x}[::2] = {y}", "{x}[:, 0] = {y}", "{x}[..., -1] -= {y}",
    "{x}.add_({y}, alpha=2)", "{x}[None] = {y}", "{x}[1:2].add_({y})", "{x}.copy_({y}.sum())",
    "{x}[0].copy_({y})",
    "{x}[0], {x}[-1] = {x}[-1].clone(), {x}[0].clone()",
    "{x}[0] = {x}[-1] + 1", "{x}[-1] += {x}[0]", "{x}[1:] = {x}[:-1].clone()", "{x}[::2] *= 3",
    "{x}.fill_diagonal_(2)", "{x}.view(-1)[1:3] = 2", "{x}.mT[0] = 3", "{x}[0] = {y}; {x}[-1] *= 2",
    "{x}[0] = 1; {x}[1:] += {x}[0]; {x}[-1] = 2", "{x}.zero_(); {x}[0] = {y}",
    "{x}[0] = {y}; {x}.mul_(2); {x}[1:].neg_()", "{x}[[0, -1]] = {x}[[-1, 0]]",
    "{x}[0][-1] = {y}.sum(); {y}[0] = {x}[0]", "{x}[:1] = {y} * {x}[-1:]",
)  # fmt: skip
JUMPING_WRITES = (
    "{x}[{x} > 0] = 1", "{x}[{x} > 1] += 1", "{x}.masked_fill_({x} < 1, 2)", "{x} &= {y}",
    "{x} |= {y}", "{x} ^= 3", "{x}.masked_fill_({y} > 0, 0)", "{x}[{y} > 0] = 2", "{x} //= 2",
    "{x}.floor_()", "{x} %= 3", "{x}.masked_scatter_({x} > 0, {y})", "{x}.sign_()",
    "{x}.logical_not_()", "{x}.eq_({y})", "{x}.copy_({x} > {y})",
)  # fmt: skip
JUMPING = frozenset((*JUMPS, *DEPENDENT, *JUMPING_WRITES))


def one_part(draw: Draw, size: int) -> str:
    """Draw what selects from one axis."""
    kind, start = draw.integer(0, 6), draw.integer(-size, max(0, size - 1))
    if kind < 2 and size:
        return str(start)
    if kind == 2:
        return f"{start}:"
    if kind == 3:
        return f":{start}"
    return f"{draw.integer(0, 1)}::{draw.integer(1, 3)}" if kind == 4 else ":"


def basic_index(draw: Draw, shape: Shape) -> str:
    parts = [one_part(draw, size) for size in shape[: draw.integer(0, len(shape))]]
    if draw.integer(0, 4) == 0:
        parts.append("...")
    if draw.integer(0, 4) == 0:
        parts.insert(draw.integer(0, len(parts)), "None")
    return ", ".join(parts) or "..."


def view(draw: Draw, shape: Shape) -> str:
    """Show the memory of the operand."""
    if draw.integer(0, 2) == 0:
        return f"{{x}}[{basic_index(draw, shape)}]"
    a, b, rank = one_axis(draw, shape), one_axis(draw, shape), len(shape)
    size, n = (shape[a] if shape else 1), draw.integer(1, 2)
    at = draw.integer(-size, max(0, size - 1))
    texts = (
        "{x}.view(-1)", reshape(draw, shape), reshape(draw, shape).replace("reshape", "view"),
        "{x}.t()", "{x}.mT", f"{{x}}.transpose({a}, {b})", f"{{x}}.swapaxes({a}, {b})",
        f"{{x}}.permute({tuple(draw.permutation(range(rank)))})", f"{{x}}.movedim({a}, {b})",
        f"{{x}}.unsqueeze({a})", "{x}.squeeze()", f"{{x}}.squeeze({a})",
        f"{{x}}.narrow({a}, {draw.integer(0, 1)}, {n})", f"{{x}}.select({a}, {at})",
        f"{{x}}.diagonal({n - 1}, {a}, {b})", f"{{x}}.expand({(n, *shape)})", "{x}.flatten()",
        "{x}.detach()", f"{{x}}.unbind({a})[{at}]", f"{{x}}.chunk({n}, {a})[-1]",
        f"{{x}}.split({n}, {a})[0]", f"{{x}}.unfold({a}, {n}, {n})", "{x}.ravel()", "{x}.data",
        "{x}.view_as({y})", "{x}.reshape(-1)", "{x}.expand_as({y})",
    )  # fmt: skip
    return str(draw.choose(texts))


def index_of(draw: Draw, shape: Sequence[int], bound: int, low: int = 0) -> str:
    return f"lib.index({tuple(shape)}, {draw.integer(0, 9)}, {max(1, bound)}, {low})"


def read(draw: Draw, shape: Shape) -> str:
    """Copy elements chosen by lists and index tensors."""
    a, first = one_axis(draw, shape), (shape[0] if shape else 1)
    size, count = (shape[a] if shape else 1), 1
    for each in shape:
        count *= each
    like = list(shape)
    like[a : a + 1 or None] = [draw.integer(0, 3)]
    wide = index_of(draw, like, size)
    row, rows = index_of(draw, (3,), size), index_of(draw, (2, 2), first, -first)
    texts = (
        f"{{x}}[{rows}]", f"{{x}}[{index_of(draw, (), first, -first)}]", "{x}[[0, -1, 0]]",
        "{x}[:, [0, -1]]", "{x}[[0, 0], [0, -1]]", "{x}[[0], :, [-1]]", f"{{x}}[..., {rows} * 0]",
        f"{{x}}[1:, {rows} * 0]", f"lib.gather({{x}}, {a}, {wide})",
        f"{{x}}.index_select({a}, {row})", f"{{x}}.take({index_of(draw, (2, 2), count, -count)})",
        f"{{x}}.take_along_dim({wide}, {a})", "{x}[[True, False]]", "{x}[True]",
        f"{{x}}.scatter({a}, {wide}, 2)", f"{{x}}.index_fill({a}, {row}, 1)",
        f"{{x}}.index_add({a}, {row}, {{x}}.index_select({a}, {row}))",
        f"{{x}}.scatter_add({a}, {wide}, lib.gather({{x}}, {a}, {wide}))",
        f"{{x}}[{index_of(draw, (0,), 1)}]",
    )  # fmt: skip
    return str(draw.choose(texts))


def write_at(draw: Draw, shape: Shape) -> str:
    """Write elements chosen by parts of an index, lists and index tensors.

    Positions that repeat get equal values or a sum: which of several values stays is not defined.
    """
    a, first = one_axis(draw, shape), (shape[0] if shape else 1)
    size, n = (shape[a] if shape else 1), draw.integer(1, 3)
    like, order = list(shape), f"lib.order({size}, {draw.integer(0, 5)})"
    like[a : a + 1 or None] = [draw.integer(0, 3)]
    wide, row = index_of(draw, like, size), index_of(draw, (n,), size)
    rows = index_of(draw, (2, 2), first, -first)
    part, y = basic_index(draw, shape), draw.choose(("{y}", "3", "{y}"))
    picked = f"{{x}}.index_select({a}, {row})"
    how = draw.choose(("sum", "amax", "amin", "prod"))
    texts = (
        f"{{x}}[{part}] = {y}", f"{{x}}[{part}] += {y}", f"{{x}}[{part}].mul_({y})",
        f"{{x}}[{rows}] = 2", f"{{x}}[{rows}] += 1", f"{{x}}[{index_of(draw, (), first)}] = {y}",
        f"{{x}}[lib.order({first}, {n})] = {y}", "{x}[[0, -1]] = 1", "{x}[:, [0, -1]] *= 2",
        "{x}[[0], [-1]] = {y}", f"{{x}}[{part}].zero_()", f"{{x}}[{part}].fill_(2)",
        f"{{x}}.index_fill_({a}, {row}, 1)", f"{{x}}.index_add_({a}, {row}, {picked} + 1)",
        f"{{x}}.index_copy_({a}, {order}, {{x}}.flip({a}))",
        f"{{x}}.scatter_({a}, {wide}, 2)", f"{{x}}.scatter_add_({a}, {wide}, "
        f"lib.gather({{x}}, {a}, {wide}))",
        f"{{x}}.scatter_reduce_({a}, {wide}, lib.gather({{x}}, {a}, {wide}), '{how}')",
        f"{{x}}.index_put_(({rows},), {{x}}[{rows}] + 1, accumulate=True)",
        f"{{x}}.index_put_((lib.order({first}, {n}),), {{y}})",
        f"{{x}}.index_reduce_({a}, {row}, {picked}, '{how}')",
        f"{{x}}.put_({order}, {{x}}.reshape(-1)[:{size}] * 2)",
        f"{{x}}[{part}] = {y}; {{x}}[{basic_index(draw, shape)}] += 1",
        f"{{x}}[..., {index_of(draw, (), shape[-1] if shape else 1)}] = {y}",
        f"{{x}}.t()[{basic_index(draw, shape[::-1])}] = {y}",
        f"{{x}}[{part}].copy_({{x}}[{basic_index(draw, shape)}].clone())",
        f"{{x}}.index_add_({a}, {row}, {picked}); {{x}}[{part}] -= 1",
        f"{{x}}.narrow({a}, {draw.integer(0, 1)}, 1).add_({y})",
        f"{{x}}.select({a}, 0).copy_({{x}}.select({a}, -1).clone())",
    )  # fmt: skip
    return str(draw.choose(texts))


def reduce(draw: Draw, shape: Shape) -> str:
    """Reductions, sorts and what joins tensors."""
    a, keep = one_axis(draw, shape), draw.boolean()
    texts = (
        "{x}.sum()", f"{{x}}.sum({a}, keepdim={keep})", f"{{x}}.amax({a})", "{x}.mean()",
        f"{{x}}.prod({a})", f"{{x}}.cumsum({a})", f"{{x}}.sort({a}).values", "{x}.max()",
        f"{{x}}.flip({a})", f"{{x}}.roll(1, {a})", f"lib.cat([{{x}}, {{y}}], {a})",
        f"lib.stack([{{x}}, {{y}}], {a})", f"{{x}}.amin({a}, keepdim={keep})", "{x}.min()",
        f"{{x}}.repeat_interleave(2, {a})", "{x}.tril()", f"{{x}}.softmax({a})",
        f"{{x}}.cumprod({a})", f"{{x}}.logcumsumexp({a})", f"{{x}}.max({a}).values",
    )  # fmt: skip
    return str(draw.choose(texts))


def jump_reduce(draw: Draw, shape: Shape) -> str:
    """Reductions that jump; of equal elements the first is chosen on the CPU."""
    a, keep = one_axis(draw, shape), draw.boolean()
    texts = (
        f"{{x}}.any({a}, keepdim={keep})", f"{{x}}.all({a})", f"{{x}}.argsort({a}, stable=True)",
        f"({{x}} > 0).sum({a})", f"{{x}}.argmax({a})", f"{{x}}.argmin({a}, keepdim={keep})",
    )  # fmt: skip
    return str(draw.choose(texts))


def cast(draw: Draw, shape: Shape) -> str:
    return f"lib.cast({{x}}, {draw.choose(DTYPES)!r})"


MEMORY_STATEMENTS: tuple[Statement, ...] = (
    view, view, view, view, view, read, read, write_at, write_at, write_at, reduce, cast,
    jump_reduce, fixed(SMOOTH), fixed(SMOOTH), fixed(JUMPS), fixed(DEPENDENT),
    fixed(SCALAR_WRITES), fixed(SCALAR_WRITES), fixed(WRITES), fixed(WRITES), fixed(JUMPING_WRITES),
)  # fmt: skip

# Gradients: nothing jumps and everything is a float.
SMOOTH_READS = (
    "{x} + {y}", "{x} * {y}", "{x} - {y}", "{x}.sin()", "{x}.tanh()", "{x} * 0.5", "{x}.clone()",
    "{x}.sigmoid() * {y}", "{x}.square()", "{x} / ({y}.square() + 1)", "{x}.cos()", "{x}.exp()",
    "({x}.square() + 1).log()", "({x}.square() + 1).sqrt()", "lib.maximum({x}, {y})", "{x}.abs()",
    "{x}.relu()", "{x} @ {y}", "{x}.clamp(-1, 1)", "{x}.detach() * {x}",
)  # fmt: skip
SMOOTH_WRITES = (
    "{x}.mul_({y})", "{x}.add_({y})", "{x}.copy_({y})", "{x}[...] = {y}", "{x}[0] = {y}",
    "{x}.mul_(2)", "{x}.zero_()", "{x}.fill_(3)", "{x}.sin_()", "{x} += {y}", "{x} *= 0.5",
    "{x}[-1] *= {y}", "{x}[1:] = {y}", "{x}[::2].mul_({y})", "{x}[:, 0] = {y}", "{x}.square_()",
    "{x}.tanh_()", "{x}.copy_({x}.sin())", "{x}[0].mul_({x}[0].clone())", "{x} -= {y}.sum()",
    "{x}[..., -1].add_({y})", "{x}.sigmoid_()", "{x}[{x} > 0] = 1.5",
    "{x}.masked_fill_({x} < 0, 2)",
    "{x}[{x} > 0] *= 2",
)  # fmt: skip
GRADIENT_STATEMENTS: tuple[Statement, ...] = (
    view, view, view, read, write_at, write_at, reduce, fixed(SMOOTH_READS), fixed(SMOOTH_READS),
    fixed(SMOOTH_WRITES), fixed(SMOOTH_WRITES),
)  # fmt: skip
