"""The statements of programs with sizes: `n` and `m` are numbers, `{x}` and `{y}` operands.

A text that begins with `!` is a statement; any other is a value that gets a name.
"""

from collections.abc import Callable, Sequence

from drawing import Draw
from vocabulary import JUMPS, SMOOTH, WHOLE

Statement = Callable[[Draw, int], str]
SPECIAL = ("nan", "inf")

VIEWS = (
    "{x}.transpose({a}, {b})", "{x}.flip({a})", "{x}.narrow({a}, 1, {x}.shape[{a}] - 1)",
    "{x}.narrow({a}, 0, {x}.shape[{a}] - 1)", "{x}.narrow({a}, {x}.shape[{a}] // 2, 1)",
    "{x}.select({a}, -1)", "{x}.select({a}, 0)", "{x}.select({a}, n // 2)", "{x}[::2]", "{x}[1:]",
    "{x}[:-1]", "{x}[..., 1:]", "{x}[..., ::2]", "{x}[..., :n]", "{x}[n // 2:]", "{x}[:, 1::2]",
    "{x}[..., None]", "{x}[None]", "{x}.unsqueeze({a})", "{x}.flatten()", "{x}.flatten({a})",
    "{x}.flatten(0, 1)", "{x}.reshape(-1)", "{x}.reshape(-1, {x}.shape[-1])",
    "{x}.reshape({x}.shape[0], -1)", "{x}.reshape(n, -1)", "{x}.reshape(-1, n)",
    "{x}.reshape(m, n, -1)", "{x}.reshape(2, -1)", "{x}.reshape(-1, 2)", "{x}.reshape(n, m, -1)",
    "{x}.unsqueeze({a}).expand(*{x}.shape[:{p}], {k}, *{x}.shape[{p}:])",
    "{x}.repeat_interleave({k}, {a})", "{x}.roll({k}, {a})", "{x}.roll(n // 2, {a})",
    "{x}.unfold({a}, 2, {k})", "{x}.diagonal(0, {a}, {b})", "{x}.chunk({k}, {a})[0]",
    "{x}.chunk(2, {a})[-1]", "{x}.split({k}, {a})[-1]", "{x}.split(n, {a})[0]",
    "{x}.unbind({a})[-1]", "{x}.movedim({a}, {b})", "{x}.repeat(2, *[1] * ({x}.dim() - 1))",
    "{x}.repeat(*[1] * ({x}.dim() - 1), n)", "lib.cat([{x}, {y}], {a})",
    "lib.cat([{x}, {x}], {a})", "lib.stack([{x}, {y}], {a})", "lib.cat([{y}, {x}, {y}], {a})",
    "lib.pad({x}, (1, 2))", "lib.pad({x}, (0, {k}), value=2)", "lib.pad({x}, (n, 0), value=1)",
    "lib.pad({x}, (0, 9 - {x}.shape[-1]))", "lib.pad({x}, (-1, 1))", "lib.pad({x}, (1, -1))",
    "{x}.tril()", "{x}.triu({k})", "{x}.squeeze({a})", "{x}.permute(*range({x}.dim())[::-1])",
    "{x}.T", "{x}.swapaxes({a}, {b}) + 1", "{x}.unflatten({a}, (-1, 2))",
    "{x}.unflatten({a}, (2, -1))", "{x}.contiguous()", "{x}.view(-1)",
    "lib.pad({x}, (1, 1), mode='reflect')", "lib.pad({x}, (1, 1), mode='replicate')",
    "lib.pad({x}, (1, 1), mode='circular')", "lib.diag_embed({x})",
    "lib.meshgrid({x}.flatten(), {y}.flatten(), indexing='ij')[0]",
)  # fmt: skip
REDUCTIONS = (
    "{x}.sum({a})", "{x}.sum({a}, keepdim=True)", "{x}.mean({a})", "{x}.sum()", "{x}.mean()",
    "{x}.amax({a})", "{x}.amin({a})", "{x}.max({a}).values", "{x}.min({a}).values", "{x}.max()",
    "{x}.clamp(-1, 1).prod({a})", "{x}.std({a})", "{x}.var({a}, keepdim=True)", "{x}.var()",
    "{x}.logsumexp({a})", "{x}.softmax({a})", "{x}.log_softmax({a})", "{x}.cumsum({a})",
    "{x}.clamp(-1, 1).cumprod({a})", "{x}.norm()", "{x}.norm(dim={a})", "{x}.argmax({a})",
    "{x}.argmin({a})", "{x}.argmax()", "{x}.any({a})", "{x}.all({a})", "({x} > 0).any()",
    "({x} > 0).sum({a})", "{x}.max({a})[1]", "{x}.sum(({a}, {b}))", "{x}.mean(({a}, {b}))",
    "{x}.amax(({a}, {b}))", "{x}.sort({a}).values",
    "{x}.sort({a}, descending=True, stable=True)[1]",
    "{x}.topk(1, {a}).values", "{x}.topk(2, {a}).values", "{x}.median({a}).values",
    "{x}.cummax({a}).values", "{x}.cummax({a}).indices", "{x}.cummin({a}).values",
    "{x}.logcumsumexp({a})", "{x} - {x}.mean({a}, keepdim=True)", "{x} / n", "{x} * {x}.shape[{a}]",
    "{x} + n * m", "({x} * {y}).sum({a})", "{x}.count_nonzero({a})",
    "{x}.argsort({a}, stable=True)",
    "{x}.kthvalue(1, {a}).values", "{x}.nansum({a})", "{x}.aminmax(dim={a}).max",
    "{x}.float().quantile(0.5, {a})", "{x}.median()", "{x}.sort({a}, stable=True).indices",
    "{x}.diff(dim={a})", "lib.cumulative_trapezoid({x}, dim={a})", "{x}.unique()",
)  # fmt: skip
PRODUCTS = (
    "{x} @ {y}", "{x} @ {x}.transpose(-1, -2)", "{x}.transpose(-1, -2) @ {x}",
    "{x}.float() @ lib.leaf(({x}.shape[-1], 3), {s}, 'float32')",
    "lib.linear({x}.float(), lib.leaf((3, {x}.shape[-1]), {s}, 'float32'), lib.leaf((3,), 1, "
    "'float32'))",
    "lib.leaf((2, {x}.shape[0]), {s}, 'float32') @ {x}.float().flatten(1)",
    "lib.einsum('...i,...i->...', {x}, {y})", "lib.einsum('i...,i...->...', {x}, {x})",
    "lib.einsum('ij,kj->ikj', {x}.reshape(-1, {x}.shape[-1])[:3], {x}.reshape(-1, {x}.shape[-1]))",
    "lib.einsum('i...->...', {x})", "lib.outer({x}.flatten(), {y}.flatten())",
    "lib.einsum('...i,ij->...j', {x}.float(), lib.leaf(({x}.shape[-1], n), {s}, 'float32'))",
    "lib.scaled_dot_product_attention(*[{x}.float()[None, None].flatten(0, -3)] * 3)",
    "lib.scaled_dot_product_attention(*[{x}.float()[None, None].flatten(0, -3)] * 3, "
    "is_causal=True)",
    "lib.baddbmm({x}, {x}, {x})", "lib.kron({x}, {y})", "lib.tensordot({x}, {y}, 1)",
    "lib.cdist({x}.float(), {y}.float())", "{x}.flatten() @ {x}.flatten()",
)  # fmt: skip
IMAGES = "{x}.float()[(None,) * max(0, 4 - {x}.dim())].flatten(0, -4)"
LINES = "{x}.float()[(None,) * max(0, 3 - {x}.dim())].flatten(0, -3)"
ROWS = "{x}.float()[(None,) * max(0, 2 - {x}.dim())]"
PICTURES = (
    f"lib.conv2d({IMAGES}, lib.leaf((2, {{x}}.shape[-3] if {{x}}.dim() > 2 else 1, {{k}}, 2), "
    "{s}, 'float32'), None, stride={k}, padding={q})",
    f"lib.conv2d({IMAGES}, lib.leaf((2, {{x}}.shape[-3] if {{x}}.dim() > 2 else 1, 3, 3), "
    "{s}, 'float32'), None, padding=1)",
    f"lib.conv1d({LINES}, lib.leaf((3, {{x}}.shape[-2] if {{x}}.dim() > 1 else 1, {{k}}), "
    "{s}, 'float32'), None, stride={k}, padding={q}, dilation={k})",
    f"lib.conv_transpose1d({LINES}, lib.leaf(({{x}}.shape[-2] if {{x}}.dim() > 1 else 1, 2, 3), "
    "{s}, 'float32'), None, stride={k}, padding={q})",
    f"lib.conv1d({LINES}, lib.leaf(({{x}}.shape[-2] if {{x}}.dim() > 1 else 1, 1, 2), {{s}}, "
    "'float32'), groups={x}.shape[-2] if {x}.dim() > 1 else 1, padding={q})",
    f"lib.max_pool2d({IMAGES}, 2)", f"lib.max_pool2d({IMAGES}, 3, 2, 1)",
    f"lib.avg_pool2d({IMAGES}, 2)", f"lib.avg_pool1d({LINES}, {{k}}, 1)",
    f"lib.avg_pool2d({IMAGES}, 3, 2, 1)", f"lib.max_pool1d({LINES}, 2, ceil_mode=True)",
    f"lib.adaptive_avg_pool1d({LINES}, 1)", f"lib.adaptive_avg_pool2d({IMAGES}, 2)",
    f"lib.adaptive_max_pool1d({LINES}, 3)",
    f"lib.interpolate({LINES}, scale_factor=2)", f"lib.interpolate({LINES}, size=n + 3)",
    f"lib.interpolate({IMAGES}, scale_factor=2, mode='bilinear')",
    f"lib.interpolate({IMAGES}, size=(n, 5), mode='bilinear', align_corners=True)",
    "lib.layer_norm({x}.float(), ({x}.shape[-1],), None, None, 0.1)",
    f"lib.batch_norm({LINES}, None, None, None, None, True, 0.1, 0.1)",
    f"lib.group_norm({LINES}, 1, None, None, 0.1)", f"lib.instance_norm({LINES}, eps=0.1)",
    "lib.normalize({x}.float(), dim={a}, eps=0.1)", f"lib.pixel_shuffle({IMAGES}, 2)",
    f"lib.cross_entropy({ROWS}, {ROWS}.argmax(1))", f"lib.unfold({IMAGES}, 2)",
    f"lib.nll_loss({ROWS}, {ROWS}.argmax(1) * 0, reduction='none')",
    "lib.mse_loss({x}.float(), {y}.float().expand_as({x}))",
    f"lib.cosine_similarity({ROWS}, {ROWS} + 1, dim={{a}})", "lib.glu({x}.float(), {a})",
    "lib.embedding({x}.long() % 3, lib.leaf((3, 2), {s}, 'float32'))",
    "lib.one_hot({x}.long() % 5, 5)",
    "lib.smooth_l1_loss({x}.float(), {x}.float() * 0, reduction='sum')",
    f"lib.lp_pool1d({LINES}.abs() + 1, 2, 2)", f"lib.local_response_norm({LINES}, 2)",
)  # fmt: skip
INDEXED = (
    "{x}[[0, -1]]", "{x}[..., [0, -1, 0]]", "{x}[lib.index((n,), {s}, {x}.shape[0])]",
    "{x}[lib.index((2, m), {s}, {x}.shape[0])]",
    "{x}.index_select({a}, lib.index((3,), {s}, {x}.shape[{a}]))",
    "{x}.index_select({a}, lib.index((n + 1,), {s}, {x}.shape[{a}]))",
    "lib.gather({x}, {a}, lib.index({x}.shape, {s}, {x}.shape[{a}]))",
    "lib.gather({x}, {a}, {x}.argmax({a}, keepdim=True))",
    "lib.take_along_dim({x}, {x}.argmin({a}, keepdim=True), {a})",
    "{x}.scatter_add({a}, lib.index({x}.shape, {s}, {x}.shape[{a}]), {x} + 1)",
    "{x}.scatter({a}, lib.index({x}.shape, {s}, 1), {x} + 1)[..., :0]",
    "{x}.index_add({a}, lib.index(({x}.shape[{a}],), {s}, {x}.shape[{a}]), {x})",
    "{x}.index_fill({a}, lib.index((2,), {s}, {x}.shape[{a}]), 3)",
    "{x}.scatter_reduce({a}, lib.index({x}.shape, {s}, {x}.shape[{a}]), {x}, 'amax')",
    "{x}.masked_fill({x} > 0, 1)", "lib.where({x} > 0, {x}, {y})", "lib.where({x} > {y}, {x}, 0)",
    "{x}.take(lib.index((3, n), {s}, {x}.numel()))", "{x}[{x} > 0]", "{x}.nonzero()",
    "{x} * lib.arange({x}.shape[-1])", "{x} + lib.arange(n * {x}.shape[-1])[::n]",
    "{x} + lib.linspace(0, 1, {x}.shape[-1])", "{x} + lib.ones({x}.shape[-1]).cumsum(0)",
    "lib.eye({x}.shape[-1]) + {x}[..., :1, :]", "lib.full((n, m), 2.0) * {k}",
    "lib.zeros({x}.shape[0], 3).index_add(0, lib.index((n,), {s}, {x}.shape[0]), lib.ones(n, 3))",
    "{x}.bincount() if {x}.dim() == 1 else {x} + 1", "lib.searchsorted(lib.arange(n), {x}.long())",
    "{x}.long() % n", "{x}.long() // 2", "{x}.bool()", "{x}.to(dtype=({x} > 0).dtype)",
    "lib.cast({x}, 'float16')", "lib.cast({x}, 'bfloat16')", "lib.cast({x}, 'int32')",
    "lib.cast({x}, 'float64')", "lib.cast({x}, 'uint8')", "lib.tril({x}) != 0",
)  # fmt: skip
WRITTEN = (
    "!{x} += 1", "!{x} *= {y}", "!{x}[0] = 2", "!{x}[..., -1] = 1", "!{x}[1:] = 3",
    "!{x}[::2] += 1",
    "!{x}[..., :n] = 0", "!{x}[{x} > 1] = 1", "!{x}.mul_(2)", "!{x}.zero_()", "!{x}[-1].add_(1)",
    "!{x}.transpose({a}, {b}).add_(lib.leaf((1,), 2, 'float32'))", "!{x}.select({a}, -1).fill_(4)",
    "!{x}.narrow({a}, 1, 1).mul_(3)", "!{x}[[0, -1]] = 1", "!{x}.clamp_(-1, 2)",
    "!{x}.view(-1)[1:] -= 1",
    "!{x}.index_fill_({a}, lib.index((n,), {s}, {x}.shape[{a}]), 1)", "!{x}.flatten()[0] = 9",
    "!{x}[n // 2] = {x}[0]", "!{x}.copy_({y})", "!{x}.masked_fill_({x} > 1, 0)",
    "!{x}.diagonal().fill_(1)",
    "!{x}.unsqueeze_(0)", "{x}.detach()", "{x}.detach().clone()", "{x}.clone()",
)  # fmt: skip


def filled(texts: Sequence[str]) -> Statement:
    """Draw one of some texts, and the axes and numbers in it."""

    def draw_one(draw: Draw, rank: int) -> str:
        text = str(draw.choose(texts))
        axis = max(rank - 1, 0)
        numbers = {"s": (0, 9), "k": (1, 3), "q": (0, 2)}
        limits = dict.fromkeys("abp", (0, axis)) | numbers
        for name, limit in limits.items():
            text = text.replace(f"{{{name}}}", str(draw.integer(*limit)))
        return text

    return draw_one


SIZE_STATEMENTS = (
    *[filled(VIEWS)] * 4, *[filled(REDUCTIONS)] * 4, filled(PRODUCTS), filled(PRODUCTS),
    *[filled(PICTURES)] * 2, *[filled(INDEXED)] * 2, filled(WRITTEN), filled(WHOLE), filled(SMOOTH),
    filled(JUMPS),
)  # fmt: skip
