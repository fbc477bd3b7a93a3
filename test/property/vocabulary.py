"""The statements random programs are made of: each draws its arguments and returns its text.

`{x}` in a text is the operand, `{y}` a second one that fits by PyTorch's rules or is dropped.
"""

from collections.abc import Callable, Sequence

from drawing import Draw

Shape = Sequence[int]
Statement = Callable[[Draw, Shape], str]

# Smooth texts, and texts that keep whole numbers whole.
SMOOTH = (
    "{x}.clamp(-4, 2).exp()", "({x}.abs() + 0.5).log()", "({x}.abs() + 0.5).sqrt()",
    "({x}.abs() + 0.5).rsqrt()", "({x}.abs() + 0.5).reciprocal()", "{x}.clamp(-9, 9).sin()",
    "{x}.clamp(-9, 9).cos()", "{x}.clamp(-9, 9).sin() * {y}.clamp(-9, 9).cos()",
    "{x}.tanh()", "{x}.sigmoid()", "lib.erf({x})", "lib.gelu({x})", "lib.silu({x})",
    "({x}.abs() + 0.5).log1p()", "{x} / ({y}.abs() + 1)", "{x} / 3", "2 / ({x}.abs() + 1)",
    "({x}.abs() + 0.5) ** ({y}.sigmoid())", "{x}.exp2().clamp(0, 8)", "{x} * 0.37 + {y}",
    "{x}.expm1().clamp(-1, 9)", "({x} - {y}).square()",
)  # fmt: skip
WHOLE = (
    "-{x}", "{x}.abs()", "{x}.relu()", "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} + 1",
    "3 - {x}", "{x} * 2", "lib.maximum({x}, {y})", "lib.minimum({x}, {y})", "{x}.square()",
    "{x}.clamp(-2, 3)", "{x} ** 2", "{x}.clamp(min=0)", "{x} + {x}", "{x}.contiguous()",
    "{x}.detach()", "lib.where({x} == {x}, {x}, {y})", "{x}.masked_fill({x} != {x}, 1)",
    "{x}.tril()", "{x}.triu(1)",
)  # fmt: skip
JUMPS = (
    "{x}.sign()", "{x}.floor()", "{x}.ceil()", "{x}.round()", "{x}.trunc()", "{x} // 3",
    "{x} % 3", "{x} // ({y}.abs() + 1)", "{x} % ({y}.abs() + 1)", "{x} < {y}", "{x} >= {y}",
    "{x} == {y}", "{x} != 1", "{x}.logical_not()", "({x} > 0) & ({y} < 1)", "({x} > 0) | ({y} > 2)",
    "lib.where({x} > 0, {x}, {y})", "lib.where({x} < {y}, {y}, 1)",
    "({x} > 0).logical_xor({y} > 0)",
    "{x}.masked_fill({y} > 0, -1)", "lib.cast({x}, 'int32')", "lib.cast({x}, 'int64')",
    "lib.cast({x}, 'bool')", "~({x} > 1)", "{x} & 6", "{x} | 9", "{x} ^ {y}",
    "({x}.abs() & 7) << 2",
    "{x} >> 1",
)  # fmt: skip
CASTS = ("float32", "float64", "float16", "bfloat16", "float32")
WRITES = (
    "{x} += {y}", "{x} -= 1", "{x} *= {y}", "{x} = lib.assign({x}, {y})", "{x}[...] = {y}",
    "{x}[0] = {y}", "{x}[::2] = 3", "{x}[1:] = {y}", "{x}[..., -1] = 2", "{x}[:, 0] = {y}",
    "{x}[-1] += {y}", "{x}[[0]] = {y}", "{x}[{y}] = 1", "lib.realize({x})", "lib.realize({x}, {y})",
)  # fmt: skip


def fixed(texts: Sequence[str]) -> Statement:
    return lambda draw, shape: str(draw.choose(texts))


def one_axis(draw: Draw, shape: Shape) -> int:
    return int(draw.integer(-len(shape), len(shape) - 1)) if shape else 0


def some_axes(draw: Draw, shape: Shape) -> tuple[int, ...]:
    order = draw.permutation(range(len(shape)))
    return tuple(order[: draw.integer(1, max(1, len(order)))])


def casting(draw: Draw, shape: Shape) -> str:
    return f"lib.cast({{x}}, {draw.choose(CASTS)!r})"


def reshape(draw: Draw, shape: Shape) -> str:
    """Merge neighbours, split a factor off, or add a 1."""
    sizes = list(shape)
    for _ in range(draw.integer(1, 3)):
        if len(sizes) > 1 and draw.boolean():
            at = draw.integer(0, len(sizes) - 2)
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
            continue
        at = draw.integer(0, max(0, len(sizes) - 1))
        whole = sizes[at] if sizes else 1
        factor = draw.choose([f for f in (1, 2, 3, 4, 5) if whole % f == 0])
        sizes[at : at + 1] = [whole // factor, factor]
    return f"{{x}}.reshape({tuple(sizes)})"


def permute(draw: Draw, shape: Shape) -> str:
    return f"{{x}}.permute({tuple(draw.permutation(range(len(shape))))})"


def flip(draw: Draw, shape: Shape) -> str:
    return f"{{x}}.flip({some_axes(draw, shape)})" if shape else "{x}"


def one_slice(draw: Draw, size: int) -> str:
    kind = draw.integer(0, 7)
    start, step = draw.integer(-1, max(0, size - 1)), draw.integer(1, 3)
    if kind == 0 and size:
        return str(max(0, start))
    if kind == 1:
        return f":{-start - 1 or size}"
    return f"{start}::{step}" if kind < 5 else ":"


def cut(draw: Draw, shape: Shape) -> str:
    parts = [one_slice(draw, size) for size in shape]
    if draw.integer(0, 5) == 0:
        parts.insert(draw.integer(0, len(parts)), "None")
    return f"{{x}}[{', '.join(parts) or '...'}]"


def expand(draw: Draw, shape: Shape) -> str:
    """Repeat along a new axis and, sometimes, along axes of size 1."""
    at, sizes = draw.integer(0, len(shape)), list(shape)
    sizes.insert(at, 1)
    wide = [draw.integer(1, 3) if size == 1 else size for size in sizes]
    return f"{{x}}.reshape({tuple(sizes)}).expand({tuple(wide)})"


def pad(draw: Draw, shape: Shape) -> str:
    count = draw.integer(1, max(1, len(shape)))
    ends = draw.integers(2 * count, -1, 2)
    return f"lib.pad({{x}}, {tuple(ends)}, value={draw.choose([0, 0, 1, -2])})"


def rearrange(draw: Draw, shape: Shape) -> str:
    """Other views and copies along one axis."""
    a, b, n = one_axis(draw, shape), one_axis(draw, shape), draw.integer(1, 3)
    texts = (
        f"{{x}}.unsqueeze({a})", f"{{x}}.squeeze({a})", f"{{x}}.transpose({a}, {b})",
        f"{{x}}.roll({n}, {a})", f"{{x}}.repeat_interleave({n}, {a})", "{x}.flatten()",
        f"{{x}}.unfold({a}, {n}, {draw.integer(1, 2)})", f"{{x}}.narrow({a}, 0, {n})",
        f"{{x}}.diagonal({n - 2}, {a}, {b})", f"{{x}}.split({n}, {a})[-1]",
        f"{{x}}.chunk({n}, {a})[0]", f"{{x}}.unbind({a})[-1]", f"{{x}}.movedim({a}, {b})",
        f"{{x}}.repeat({', '.join(['2'] + ['1'] * (max(1, len(shape)) - 1))})",
        f"lib.cat([{{x}}, {{y}}], {a})", f"lib.cat([{{x}}, {{x}}], {a})",
        f"lib.stack([{{x}}, {{y}}], {a})", f"lib.cat([{{y}}, {{x}}, {{y}}], {a})",
    )  # fmt: skip
    return str(draw.choose(texts))


def reduce(draw: Draw, shape: Shape) -> str:
    """Reductions whose value moves smoothly with their input."""
    axes, keep, one = some_axes(draw, shape), draw.boolean(), one_axis(draw, shape)
    many = f"dim={axes}, keepdim={keep}" if shape else ""
    texts = (
        f"{{x}}.sum({many})", f"{{x}}.mean({many})", f"{{x}}.amax({many})", f"{{x}}.amin({many})",
        f"{{x}}.max(dim={one}).values", "{x}.sum()", "{x}.mean()", "{x}.max()",
        f"{{x}}.clamp(-1, 1).prod(dim={one})", f"{{x}}.cumsum({one})", f"{{x}}.sum({many})",
        f"({{x}} * {{y}}).sum({many})", f"({{x}} - {{x}}.mean({many})).square().sum()",
    )  # fmt: skip
    return str(draw.choose(texts))


def normalize(draw: Draw, shape: Shape) -> str:
    one, last = one_axis(draw, shape), shape[-1] if shape else 1
    weight = f"lib.leaf(({last},), {draw.integer(0, 9)}, 'float32')"
    texts = (
        f"{{x}}.softmax({one})", f"{{x}}.log_softmax({one})", f"{{x}}.logsumexp({one})",
        f"lib.layer_norm({{x}}, ({last},), {weight}, {weight} + 1, 0.01)",
        f"lib.layer_norm({{x}}, ({last},), None, None, 0.1)", f"{{x}}.var({one})",
        f"({{x}}.var({one}, keepdim=True) + 1).rsqrt() * {{x}}",
    )  # fmt: skip
    return str(draw.choose(texts))


def choose(draw: Draw, shape: Shape) -> str:
    """Reductions that jump: which element, whether any."""
    one, keep = one_axis(draw, shape), draw.boolean()
    names = ("argmax", "argmin", "any", "all")
    texts = [f"{{x}}.{name}({one}, keepdim={keep})" for name in names]
    texts += ["{x}.argmax()", "({x} > 0).any()", f"({{x}} > 0).sum({one})", f"{{x}}.max({one})[1]"]
    return str(draw.choose(texts))


def product(draw: Draw, shape: Shape) -> str:
    """Products with another operand, with itself, or with a new leaf that fits."""
    last, out = shape[-1] if shape else 1, draw.integer(1, 5)
    seed = draw.integer(0, 9)
    texts = [f"{{x}} @ lib.leaf(({last}, {out}), {seed}, 'float32')", "{x} @ {y}"]
    if len(shape) >= 2:
        letters = "abcdef"[: len(shape)]
        order = "".join(draw.permutation(letters + "z"))
        texts += [
            "{x} @ {x}.transpose(-1, -2)", "{x}.transpose(-1, -2) @ {x}",
            f"lib.einsum('{letters},{letters[-1]}z->{order[: draw.integer(1, 4)]}', {{x}}, "
            f"lib.leaf(({last}, {out}), {seed}, 'float32'))",
            f"lib.einsum('{letters},{letters}->{letters[1:]}', {{x}}, {{y}})",
        ]  # fmt: skip
    return str(draw.choose(texts))


def image(shape: Shape) -> tuple[str, tuple[int, ...]]:
    """The operand as (N, C, H, W)."""
    if len(shape) == 4:
        return "{x}", tuple(shape)
    sizes = (*((1,) * (4 - len(shape[-4:]))), *shape[-4:])
    return f"{{x}}.reshape({sizes})", sizes


def convolve(draw: Draw, shape: Shape) -> str:
    text, (_, channels, _, _) = image(shape)
    kernel = (draw.integer(1, 3), draw.integer(1, 3))
    stride, dilation, padding = (draw.integer(low, 2) for low in (1, 1, 0))
    groups = draw.choose([1, 1, max(1, channels)])
    size = (groups * draw.integer(1, 3), max(1, channels // groups), *kernel)
    weight = f"lib.leaf({size}, {draw.integer(0, 9)}, 'float32')"
    bias = f", lib.leaf(({size[0]},), 1, 'float32')" if draw.boolean() else ", None"
    options = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
    return f"lib.conv2d({text}, {weight}{bias}, {options})"


def pool(draw: Draw, shape: Shape) -> str:
    name = draw.choose(["max_pool2d", "avg_pool2d"])
    size, stride = draw.integer(1, 3), draw.integer(1, 3)
    padding = draw.integer(0, size // 2)
    return f"lib.{name}({image(shape)[0]}, {size}, stride={stride}, padding={padding})"


def select(draw: Draw, shape: Shape) -> str:
    """Indexing with lists and index tensors, gather, and their adjoints."""
    one, seed = one_axis(draw, shape), draw.integer(0, 9)
    size, first = (shape[one], shape[0]) if shape else (1, 1)
    like = list(shape)
    like[one : one + 1 or None] = [draw.integer(1, 4)]
    index = f"lib.index({tuple(like)}, {seed}, {max(1, size)})"
    rows = f"lib.index(({draw.integer(1, 3)}, 2), {seed}, {max(1, first)}, {-max(1, first)})"
    row = f"lib.index(({draw.integer(1, 4)},), {seed}, {max(1, size)})"
    texts = (
        f"lib.gather({{x}}, {one}, {index})", f"{{x}}[{rows}]", f"{{x}}[..., {rows} * 0]",
        f"{{x}}.index_select({one}, {row})", "{x}[[0, -1, 0]]", "{x}[:, [0, -1]]",
        f"{{x}}.scatter_add({one}, {index}, lib.gather({{x}}, {one}, {index}))",
        f"{{x}}.index_add(0, lib.index(({first},), {seed}, {max(1, first)}), {{x}})",
        "{x}[{y}]",
    )  # fmt: skip
    return str(draw.choose(texts))


SMOOTH_STATEMENTS: tuple[Statement, ...] = (
    fixed(SMOOTH), fixed(SMOOTH), fixed(WHOLE), fixed(WHOLE), reshape, permute, flip, cut, cut,
    expand, pad, rearrange, rearrange, reduce, reduce, normalize, product, convolve, pool, select,
)  # fmt: skip
STATEMENTS = (*SMOOTH_STATEMENTS, fixed(JUMPS), choose, casting, fixed(WRITES), fixed(WRITES))
JUMPING = frozenset(JUMPS)
