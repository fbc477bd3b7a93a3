"""Random programs about the state of gradients: leaves, views, writes, hooks, `grad`, transforms.

A line is Python over `T`, which is either library; a program is a function of its number alone. A
line is kept if PyTorch accepts it and all values stay calm. What PyTorch leaves open, or decides
otherwise by record (`docs/records/0013-ecosystem`), has no line here.
"""

import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from drawing import Draw

torch = pytest.importorskip("torch")

SHAPES = ((), (1,), (2,), (3,), (3,), (3,), (2, 3), (3, 3), (3, 1), (1, 3), (2, 2, 3))
LARGEST, MOST = 1e5, 200
REFUSALS = (RuntimeError, IndexError, TypeError, ValueError, NameError, AttributeError)
Names = dict[str, Any]

READS = (
    "{x}.sin()", "{x}.tanh()", "{x} * 2", "-{x}", "{x}.square()", "{x} ** 3", "{x}.clone()",
    "({x}.square() + 1).log()", "1 / ({x}.square() + 1)", "{x}.detach() * {x}", "{x}.softmax(-1)",
    "{x}.cumsum(0)", "{x}.flip(0)", "{x}.roll(1, 0)", "T.where({x} > 0, {x}, {x} * 3)",
    "T.zeros_like({x})", "{x}.sum()", "{x}.mean()", "{x}.sum(0)", "{x}.sum(-1, keepdim=True)",
    "{x}.amax(-1)", "{x}.prod()", "{x}[[0, 0]]", "{x}[[0, -1]]", "{x}[T.tensor([0, 0])]",
    "{x} + {y}", "{x} * {y}", "{x} - {y}", "T.maximum({x}, {y})", "{x} @ {y}",
    "T.cat([{x}, {y}])", "T.stack([{x}, {y}])", "{x} * {y}.detach()", "Twice({x})",
    "Square({x} * {y})",
)  # fmt: skip
VIEWS = (
    "{x}[0]", "{x}[-1]", "{x}[1:]", "{x}[:2]", "{x}[::2]", "{x}[:, 0]", "{x}[..., -1]", "{x}[None]",
    "{x}.t()", "{x}.mT", "{x}.view(-1)", "{x}.reshape(-1)", "{x}.unsqueeze(0)", "{x}.squeeze()",
    "{x}.transpose(0, -1)", "{x}.narrow(0, 0, 1)", "{x}.diagonal()", "{x}.repeat(2, 1)",
    "{x}.unbind(0)[-1]", "{x}.chunk(2)[-1]", "{x}.detach()", "{x}.data", "{x}.movedim(0, -1)",
    "{x}.view({x}.shape)", "{x}.view({x}.dtype)", "{x}[...]", "{x}.unfold(0, 2, 1)",
)  # fmt: skip
WRITES = (
    "{x}.add_(1)", "{x}.mul_(2)", "{x}.zero_()", "{x}.fill_(3)", "{x}.sin_()", "{x} *= 0.5",
    "{x}.add_({y})", "{x}.mul_({y})", "{x}.copy_({y})", "{x}[0] = {y}", "{x}[-1] += {y}",
    "{x}[1:] = {y}", "{x}[::2].mul_({y})", "{x}[:, 0] = {y}", "{x}[...] = {y}", "{x}[0] = 1",
    "{x}[[0, -1]] *= 2", "{x}.copy_({x}.sin())", "{x} -= {y}.sum()", "{x}.lerp_({y}, 0.5)",
    "{x}.index_put_((T.tensor([0, 0]),), {y}, accumulate=True)", "{x}.squeeze_()",
    "{x}.masked_fill_({x} < 0, 2)", "{x}[{x} > 0] *= 2", "{x}.unsqueeze_(0)", "T.sin({y}, out={x})",
    "with T.no_grad(): {x}.mul_({y})", "with T.no_grad(): {x}[0] = 3", "{x}.data.mul_(2)",
    "with T.no_grad(): {n} = {x} * 2", "{x}.data = {y}.detach().clone()", "{x}.detach()[0] = 4",
    "with T.no_grad(): {x} -= 0.1 * {x}.grad", "{n} = {x}.detach().requires_grad_()",
    "{n} = T.zeros(2, 3, dtype=T.float64)\nfor i in range(2): {n}[i] = {x}",
    "for row in {x}.unbind(0): row.detach().mul_(2)",
)  # fmt: skip
STATES = (
    "{x}.requires_grad_()", "{x}.requires_grad_(False)", "{x}.detach_()", "{x}.retain_grad()",
    "{x}.grad = None", "{x}.grad.zero_()", "{n} = {x}.grad * 2", "{x}.grad.mul_(2)",
    "{x}.grad = T.ones_like({x})", "{n} = {x}.grad.clone()", "{x}.grad[0] = 7", "del {x}",
    "{x}.register_hook(lambda g: g * 2)", "{x}.register_hook(lambda g: seen.append(g.sum()))",
    "{x}.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2))",
    "{x}.register_hook(lambda g: T.zeros_like(g))", "h = {x}.register_hook(lambda g: g + 1)",
    "h.remove()", "{n} = copy.deepcopy({x})", "{n} = pickle.loads(pickle.dumps({x}))",
)  # fmt: skip
WALKS = (
    "{x}.sum().backward(retain_graph=True)", "{x}.backward(T.ones_like({x}), retain_graph=True)",
    "({x} * {y}).sum().backward(retain_graph=True)", "{x}.sum().backward(create_graph=True)",
    "{x}.square().sum().backward(create_graph=True)",
    "{n} = T.autograd.grad({x}.sum(), {y}, retain_graph=True)[0].clone()",
    "{n} = T.autograd.grad({x}.square().sum(), {y}, create_graph=True)[0].clone()",
    "{n} = T.autograd.grad({x}.sum(), {x}, retain_graph=True)[0].clone()",
    "{n} = T.autograd.grad(({x} * {y}).sum(), [{x}, {y}], create_graph=True)[0].clone()",
)  # fmt: skip
BODIES = (
    "a.sin() * a", "(a * a).sum()", "a[0] * 2", "a.sum(0) * a", "a", "a * {y}", "a @ {y}",
    "a.clone().mul_(2)", "a.detach() * a", "a.softmax(-1)", "a.view(-1).prod()", "a.cumsum(-1)",
    "T.stack([a, a * 2])", "a.square().sum().sqrt()", "T.func.grad(lambda b: (b ** 3).sum())(a)",
    "T.vmap(lambda b: b * a.sum())(a)", "T.func.vjp(lambda b: b * a, a)[1](a)[0]", "a.exp()",
)  # fmt: skip
TRANSFORMS = (
    "T.func.grad({f})({x})", "T.vmap({f})({x}).clone()", "T.vmap(T.func.grad({f}))({x})",
    "T.func.jvp({f}, ({x},), (T.ones_like({x}),))[1]", "T.func.vjp({f}, {x})[0].clone()",
    "T.func.jacrev({f})({x})", "T.func.jacfwd({f})({x})", "T.func.hessian({f})({x})",
    "T.func.grad(lambda b: T.vmap({f})(b).sum())({x})", "({f})({x})", "T.vmap(T.vmap({f}))({x})",
    "T.utils.checkpoint.checkpoint({f}, {x}, use_reentrant=False)",
)  # fmt: skip
KINDS = {READS: 16, VIEWS: 14, WRITES: 14, STATES: 8, WALKS: 10, TRANSFORMS: 4}
# What reads values, or outlives a call, is no part of a jitted function.
UNJITTED = re.compile(r"seen|pickle|deepcopy|del |h\.|_hook|retain_grad\(|> 0\] \*=|_\(False\)")


def contents(shape: Sequence[int], seed: int) -> Any:
    """Small eighths, so that sums are exact, or small whole numbers with ties."""
    random = np.random.default_rng(seed)
    if seed % 2:
        return np.round(random.standard_normal(shape) * 8) / 8
    return random.integers(-3, 4, shape).astype(np.float64)


def custom_functions(library: ModuleType) -> Names:
    """Make functions with gradients of their own."""

    class Twice(library.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, flowing: Any) -> Any:
            return flowing * 2

    class Square(library.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, flowing: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * flowing

    return {"Twice": Twice.apply, "Square": Square.apply}


def is_calm(names: Names) -> bool:
    """Tell whether all values and gradients are small."""
    for name, value in names.items():
        if not re.fullmatch(r"t\d+", name):
            continue
        if not isinstance(value, torch.Tensor) or value.numel() > MOST or value.dim() > 5:
            return False
        for each in (value, value.grad if value.is_leaf or value.retains_grad else None):
            if each is not None and each.numel() and not bool(each.detach().abs().max() < LARGEST):
                return False
    return True


def one_line(draw: Draw, names: Names, number: int) -> str:
    """Draw a statement about the tensors there are; half of the time about late ones."""
    tensors = [name for name in names if re.fullmatch(r"t\d+", name)]
    x = draw.choose(tensors[-4:] if draw.boolean() else tensors)
    y, kind = draw.choose(tensors), draw.random.choices(list(KINDS), list(KINDS.values()))[0]
    text = draw.choose(kind).replace("{f}", f"lambda a: {draw.choose(BODIES)}")
    line = text.format(x=x, y=y, n=f"t{number}")
    return f"t{number} = {line}" if kind in (READS, VIEWS, TRANSFORMS) else line


def draw_autograd_program(
    draw: Draw, start: Names, is_jitted: bool, length: int = 14
) -> tuple[list[str], list[str]]:
    """Draw leaves, and lines that PyTorch accepts; `start` is what it may name beside tensors."""
    leaves = []
    for number in range(draw.integer(2, 4)):
        asks = ", requires_grad=True" if draw.integer(0, 2) else ""
        shape, seed = draw.choose(SHAPES), draw.integer(0, 9)
        leaves.append(f"t{number} = T.tensor(contents({shape}, {seed}){asks})")
    lines: list[str] = []
    names = replayed(leaves, start)
    for _ in range(draw.integer(4, length)):
        line = one_line(draw, names, len(leaves) + len(lines))
        if is_jitted and UNJITTED.search(line):
            continue
        try:
            exec(line, names)
            is_kept = is_calm(names)
        except REFUSALS:
            is_kept = False
        if is_kept:
            lines.append(line)
        else:  # it may have changed something
            names = replayed([*leaves, *lines], start)
    return leaves, lines


def replayed(lines: Sequence[str], start: Names) -> Names:
    """Run lines that were accepted before."""
    names = {**start, "seen": []}
    for line in lines:
        exec(line, names)
    return names
