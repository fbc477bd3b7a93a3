"""Graphs whose plans are watched: by name, a function that prepares one and returns its step.

`GRAPHS[name](device)` makes the leaves; calling what it returns records the graph once and returns
the tensors that are to be computed. Sizes are those of real programs: nothing is computed.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from plan_text import only_plans

import picograd
from picograd import Tensor, nn, no_grad
from picograd.engine import pending
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.tracing import noting, tracing
from picograd.errors import check
from picograd.schedule.plan import Plan

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

F = nn.functional
Step = Callable[[], Any]
GRAPHS: dict[str, Callable[[str], Step]] = {}
ROWS, COLUMNS = 1024, 2048
IMAGES = (64, 32, 28, 28)
TOKENS, CLASSES = 512, 50304
LAYER = (8, 128, 256)  # sequences, tokens, features
TEXTS = (4, 1024, 768)


def leaf(device: str, *shape: int, grad: bool = False) -> Tensor:
    """Make a tensor in memory."""
    return Tensor.rand(*shape, device=device).realize().requires_grad_(grad)


def labels(device: str, *shape: int) -> Tensor:
    """Make class numbers, which have values: they are checked when recorded."""
    return Tensor(np.zeros(shape, np.int64), device=device)


def add(name: str, function: Callable[..., Any], *shapes: Sequence[int]) -> None:
    """Watch a function of leaves of some shapes."""

    def prepare(device: str) -> Step:
        return partial(function, *[leaf(device, *shape) for shape in shapes])

    GRAPHS[name] = prepare


def add_gradient(name: str, function: Callable[..., Tensor], *shapes: Sequence[int]) -> None:
    """Watch the gradients of a function; its value too if the name says so."""

    def prepare(device: str) -> Step:
        leaves = [leaf(device, *shape, grad=True) for shape in shapes]
        seed = leaf(device, *function(*leaves).shape)

        def step() -> list[Tensor]:
            for x in leaves:
                x.grad = None
            y = function(*leaves)
            y.backward(seed)
            both = [y] if "forward" in name else []
            return [*both, *(x.grad for x in leaves if x.grad is not None)]

        return step

    GRAPHS[name] = prepare


def add_module(name: str, make: Callable[[], Any], *shape: int, train: bool = True) -> None:
    """Watch a module on one input: forward, or forward and backward."""

    def prepare(device: str) -> Step:
        model = make().to(device).train(train)
        x = leaf(device, *shape, grad=train)
        parameters = list(model.parameters())

        def step() -> list[Tensor]:
            for p in (x, *parameters):
                p.grad = None
            y = model(x)
            if not train:
                return [y]
            y.square().mean().backward()
            return [p.grad for p in (x, *parameters) if p.grad is not None]

        return step

    GRAPHS[name] = prepare


def graph(function: Callable[[str], Step]) -> Callable[[str], Step]:
    """Watch what a function prepares, under its name."""
    GRAPHS[function.__name__] = function
    return function


def training(model: Any, optimizer: Any, loss: Callable[[], Tensor]) -> Step:
    """Make a training step; PyTorch's order of calls."""

    def step() -> list[Tensor]:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return [value]

    return step


# Reductions and what is chained to them.
for axis in (0, 1):
    add(f"softmax_{axis}", partial(Tensor.softmax, dim=axis), (ROWS, COLUMNS))
    add(f"argmax_{axis}", partial(Tensor.argmax, dim=axis), (ROWS, COLUMNS))
    add(f"cumsum_{axis}", partial(Tensor.cumsum, dim=axis), (ROWS, COLUMNS))
    add(f"sum_{axis}", partial(Tensor.sum, dim=axis), (ROWS, COLUMNS))
    add(f"mean_var_{axis}", lambda x, d=axis: (x.mean(d), x.var(d)), (ROWS, COLUMNS))
add("softmax_middle", lambda x: x.softmax(1), (16, 4096, 64))
add("softmax_two_axes", lambda x: x.flatten(1).softmax(1).reshape(x.shape), (64, 128, 128))
add("softmax_long", lambda x: x.softmax(1), (8, 1_000_000))
add("softmax_vocabulary", lambda x: x.softmax(1), (TOKENS, CLASSES))
add("logsumexp_long", lambda x: x.logsumexp(1), (8, 1_000_000))
add("log_softmax", lambda x: x.log_softmax(1), (ROWS, COLUMNS))
add_gradient("softmax_backward", lambda x: x.softmax(1), (ROWS, COLUMNS))
add("sort", lambda x: x.sort(1), (64, 1000))
add("global_norm", lambda *g: nn.utils.get_total_norm(g), *[(64, 32 + n) for n in range(40)])

# Norms, alone and beside a residual.
WIDTH = (4096, 768)
add("layer_norm", lambda x, w, b: F.layer_norm(x, (768,), w, b), WIDTH, (768,), (768,))
add("rms_norm", lambda x, w: F.rms_norm(x, (768,), w), WIDTH, (768,))
add("group_norm", lambda x, w, b: F.group_norm(x, 8, w, b), IMAGES, (32,), (32,))
add("group_norm_silu", lambda x, w, b: F.silu(F.group_norm(x, 8, w, b)), IMAGES, (32,), (32,))
add_gradient(
    "layer_norm_backward", lambda x, w, b: F.layer_norm(x, (768,), w, b), WIDTH, (768,), (768,)
)
add_gradient("rms_norm_backward", lambda x, w: F.rms_norm(x, (768,), w), WIDTH, (768,))


def residual_norm(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Add, and normalise; the sum is wanted too."""
    total = x + y
    return total, F.layer_norm(total, (768,), w, b)


def dropout_residual_norm(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Drop, add, and normalise; the sum is wanted too."""
    return residual_norm(x, F.dropout(y, 0.1, True), w, b)


add("residual_norm", residual_norm, WIDTH, WIDTH, (768,), (768,))
add("dropout_residual_norm", dropout_residual_norm, WIDTH, WIDTH, (768,), (768,))
add_module("batch_norm_train", lambda: nn.BatchNorm2d(32), *IMAGES)
add_module("batch_norm_eval", lambda: nn.BatchNorm2d(32), *IMAGES, train=False)


# Losses.
@graph
def cross_entropy(device: str) -> Step:
    """The mean over rows of a vocabulary."""
    x, y = leaf(device, TOKENS, 1000), labels(device, TOKENS)
    return lambda: F.cross_entropy(x, y)


@graph
def cross_entropy_vocabulary(device: str) -> Step:
    """A row does not fit a block."""
    x, y = leaf(device, TOKENS, CLASSES), labels(device, TOKENS)
    return lambda: F.cross_entropy(x, y)


@graph
def cross_entropy_forward_backward(device: str) -> Step:
    """The loss and the gradient of the scores."""
    x, y = leaf(device, TOKENS, 1000, grad=True), labels(device, TOKENS)

    def step() -> list[Any]:
        x.grad = None
        loss = F.cross_entropy(x, y)
        loss.backward()
        return [loss, x.grad]

    return step


@graph
def focal_forward_backward(device: str) -> Step:
    """A loss of the probability of each row's class, and the gradient of the scores."""
    x, y = leaf(device, TOKENS, 1000, grad=True), labels(device, TOKENS, 1)

    def step() -> list[Any]:
        x.grad = None
        given = F.log_softmax(x, 1).gather(1, y)
        loss = (-((1 - given.exp()) ** 2) * given).mean()
        loss.backward()
        return [loss, x.grad]

    return step


# Optimizers over many tensors.
@graph
def momentum_update(device: str) -> Step:
    """SGD with momentum and weight decay."""
    parameters = [nn.Parameter(leaf(device, 64, 32 + n)) for n in range(30)]
    optimizer = nn.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4)
    for p in parameters:
        p.grad = leaf(device, *p.shape)

    def step() -> list[Tensor]:
        optimizer.step()
        return list(parameters)

    return step


def optimizer_step(make: Callable[[Any], Any], device: str, most: float = 0.0) -> Step:
    """A step over 60 parameters, with the norm of their gradients clipped."""
    parameters = [nn.Parameter(leaf(device, 64, 32 + n)) for n in range(60)]
    optimizer = make(parameters)
    for p in parameters:
        p.grad = leaf(device, *p.shape)

    def step() -> list[Tensor]:
        if most:
            nn.utils.clip_grad_norm_(parameters, most)
        optimizer.step()
        return list(parameters)

    return step


GRAPHS["adamw_update"] = partial(optimizer_step, nn.optim.AdamW)
GRAPHS["adamw_clipped"] = partial(optimizer_step, nn.optim.AdamW, most=1.0)
GRAPHS["adagrad_update"] = partial(optimizer_step, nn.optim.Adagrad)


@graph
def moving_averages(device: str) -> Step:
    """Averages of weights, in two writes each."""
    pairs = [[leaf(device, 64, 32 + n) for _ in range(2)] for n in range(40)]

    def step() -> list[Tensor]:
        with no_grad():
            return [mean.mul_(0.99).add_(x, alpha=0.01) for mean, x in pairs]

    return step


# Products with what is around them.
add("linear_gelu", lambda x, w, b: F.gelu(F.linear(x, w, b)), WIDTH, (1024, 768), (1024,))
add("scaled_product", lambda q, k: (q * 0.125) @ k.T, WIDTH, WIDTH)
add_gradient(
    "linear_gelu_forward_backward",
    lambda x, w, b: F.gelu(F.linear(x, w, b)),
    WIDTH, (1024, 768), (1024,),
)  # fmt: skip
SWIGLU = (WIDTH, (2048, 768), (2048, 768), (768, 2048))


def swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """One linear map gates another."""
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pairs (i, i + D/2) by angles."""
    a, b = x.chunk(2, -1)
    return Tensor.cat([a * cos - b * sin, b * cos + a * sin], -1)


add("swiglu", swiglu, *SWIGLU)
add_gradient("swiglu_forward_backward", swiglu, *SWIGLU)


def normed_rope(x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pairs of what is normed before, as queries and keys are."""
    return rope(F.rms_norm(x, (64,), weight), cos, sin)


def experts_gate(x: Tensor) -> tuple[Tensor, Tensor]:
    """The eight experts of each token, and their shares."""
    values, indices = x.softmax(-1).topk(8, -1)
    return values / values.sum(-1, keepdim=True), indices


add("rope", rope, (4, 12, 256, 64), (256, 32), (256, 32))
add("normed_rope", normed_rope, (4, 12, 256, 64), (64,), (256, 32), (256, 32))
add("experts_gate", experts_gate, (4096, 64))
HEADS = (4, 12, 256, 64)
attend = F.scaled_dot_product_attention
add("attention", lambda q, k, v: attend(q, k, v, is_causal=True), HEADS, HEADS, HEADS)
add_gradient("attention_backward", lambda q, k, v: attend(q, k, v), HEADS, HEADS, HEADS)

# Convolutions and pooling.
FILTER = (32, 32, 3, 3)
add("conv_relu_pool", lambda x, w, b: F.max_pool2d(F.relu(F.conv2d(x, w, b, 1, 1)), 2),
    IMAGES, FILTER, (32,))  # fmt: skip
add("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), IMAGES)
add("avg_pool", lambda x: F.avg_pool2d(x, 2), IMAGES)
add_gradient("max_pool_backward", lambda x: F.max_pool2d(x, 2), IMAGES)


def unit() -> nn.Module:
    """Convolution, batch norm, ReLU."""
    return nn.Sequential(nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU())


@graph
def conv_norm_relu_forward(device: str) -> Step:
    """With the running statistics."""
    model, x = unit().to(device), leaf(device, *IMAGES)
    return lambda: model(x)


add_module("conv_norm_relu_backward", unit, *IMAGES)


# Indexing.
@graph
def embedding_forward_backward(device: str) -> Step:
    """Rows of a table, and the gradient of the table."""
    table, rows = leaf(device, 5000, 256, grad=True), labels(device, TOKENS)

    def step() -> list[Any]:
        table.grad = None
        y = F.embedding(rows, table)
        y.square().mean().backward()
        return [y, table.grad]

    return step


@graph
def scatter_add(device: str) -> Step:
    """Add rows where indices say."""
    base, rows = leaf(device, 1000, 64), labels(device, TOKENS)
    updates = leaf(device, TOKENS, 64)
    return lambda: base.index_add(0, rows, updates)


add("cat", lambda *parts: Tensor.cat(list(parts), 1), *[(64, 100 + n) for n in range(12)])
add("stack_and_sum", lambda *parts: Tensor.stack(list(parts)).sum(0), *[(64, 100)] * 12)


# Networks.
def transformer_layer() -> nn.Module:
    """A layer of an encoder."""
    return nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.1, batch_first=True)


add_module("transformer_layer_eval", transformer_layer, *LAYER, train=False)
add_module("transformer_layer_train", transformer_layer, *LAYER)


def layer_step(layer: nn.Module, device: str, *more: Tensor) -> Step:
    """Forward and gradients of a layer of a language model, products in bfloat16."""
    layer, x = layer.to(device), leaf(device, *TEXTS, grad=True)
    seed, parameters = leaf(device, *TEXTS), [x, *layer.parameters()]

    def step() -> list[Any]:
        for p in parameters:
            p.grad = None
        with picograd.autocast(x.device.type, dtype=picograd.bfloat16):
            y = layer(x, *more)
        y.backward(seed)
        return [y, *(p.grad for p in parameters)]

    return step


@graph
def gpt2_layer_train(device: str) -> Step:
    """A layer of GPT-2 124M."""
    from gpt import GPT2, Block

    return layer_step(Block(GPT2), device)


@graph
def llama_layer_train(device: str) -> Step:
    """A layer of a small Llama: rotary positions, SwiGLU, four heads of keys for twelve."""
    from decoder import Block, Sizes

    angles = (leaf(device, 1, TEXTS[1], 32) for _ in range(2))
    layer = Block(Sizes(32000, 1024, TEXTS[2], 2048, 1, 12, 4, 64))
    return layer_step(layer, device, tuple(angles))


@graph
def lstm_train(device: str) -> Step:
    """Two layers over 32 steps."""
    model = nn.LSTM(64, 128, 2, batch_first=True).to(device)
    optimizer, x = nn.optim.SGD(model.parameters(), lr=0.1), leaf(device, 16, 32, 64)
    return training(model, optimizer, lambda: model(x)[0].square().mean())


@graph
def mlp_train(device: str) -> Step:
    """The step of examples/mnist_mlp.py."""
    from mnist_mlp import Network

    model = Network().to(device)
    optimizer = nn.optim.Adam(model.parameters(), lr=4e-3)
    x, y = leaf(device, 128, 784), labels(device, 128)
    return training(model, optimizer, lambda: F.cross_entropy(model(x), y))


@graph
def mnist_cnn_train(device: str) -> Step:
    """The step of examples/mnist_cnn.py."""
    from mnist_cnn import Network

    model = Network().to(device)
    optimizer = nn.optim.Adam(model.parameters(), lr=4e-3)
    x, y = leaf(device, 128, 1, 28, 28), labels(device, 128)
    return training(model, optimizer, lambda: F.cross_entropy(model(x), y))


@graph
def resnet18_train(device: str) -> Step:
    """The step of examples/resnet18.py, on images of ImageNet's size."""
    from resnet18 import ResNet18

    model = ResNet18().to(device)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    x, y = leaf(device, 32, 3, 224, 224), labels(device, 32)
    return training(model, optimizer, lambda: F.cross_entropy(model(x), y))


@graph
def resnet18_eval(device: str) -> Step:
    """Scores of one batch."""
    from resnet18 import ResNet18

    model, x = ResNet18().to(device).eval(), leaf(device, 32, 3, 224, 224)
    return no_grad()(lambda: model(x))


@graph
def cifar10_train(device: str) -> Step:
    """The step of examples/cifar10.py."""
    from cifar10 import Network, make_transforms

    model, varied = Network().to(device), make_transforms()[1]
    optimizer = nn.optim.AdamW(model.parameters(), lr=2e-3)
    x = Tensor.randint(0, 256, (128, 3, 32, 32), device=device).to(picograd.uint8).realize()
    y = labels(device, 128)
    return training(model, optimizer, lambda: F.cross_entropy(model(varied(x)), y))


@graph
def gpt_train(device: str) -> Step:
    """The step of examples/gpt.py, of one layer."""
    from gpt import GPT, Sizes

    model = GPT(Sizes(80, layers=1)).to(device)
    optimizer = nn.optim.AdamW(model.parameters(), lr=3e-3)
    x, y = labels(device, 16, 64), labels(device, 16 * 64)
    return training(model, optimizer, lambda: F.cross_entropy(model(x).flatten(0, 1), y))


@graph
def decoder_step(device: str) -> Step:
    """One token of examples/decoder.py with the cache of 15 before it."""
    from decoder import Decoder, Sizes

    model, token = Decoder(Sizes(79, layers=2)).to(device), labels(device, 1, 1)
    cache = [[x.realize() for x in part] for part in model.empty_cache()]

    def step() -> list[Any]:
        with no_grad():
            scores = model(token, cache, 15)
        return [scores, *(x for part in cache for x in part)]

    return step


@graph
def micrograd_train(device: str) -> Step:
    """A small perceptron with SGD."""
    sizes, layers = (2, 16, 16), []
    for inside, outside in pairwise(sizes):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(16, 1)).to(device)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    x, y = leaf(device, 100, 2), leaf(device, 100, 1)
    return training(model, optimizer, lambda: (1.0 - y * model(x)).relu().mean())


def plan_of(name: str, device: str) -> Plan:
    """Make the plan of a graph on a device: of its second run, when all state is in memory.

    As `jit` does, all of a run is one plan, with the checks of its indices.
    """
    with only_plans(device) as plans:
        step = GRAPHS[name](device)
        pending.realize_all()
        compute(step)
        plans.is_open = True
        compute(step)
        plans.is_open = False
    check(len(plans) == 1, "a graph is one plan", name)
    return plans[0]


def compute(step: Step) -> None:
    """Record a graph, and ask for the values of its tensors together."""
    with tracing(), noting() as trace:
        found = step()
    tensors = [found] if isinstance(found, Tensor) else list(found)
    nodes = [*(x.node for x in tensors), *(failed for failed, *_ in trace.checks)]
    pending.compute([node for node in nodes if leaf_buffer(node) is None])
