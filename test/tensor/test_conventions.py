"""Every spelling of the conventions shared with PyTorch and tinygrad, in a table.

A row is a call on tensors and what PyTorch, or NumPy where PyTorch has no such spelling, gives for
it. The call takes the inputs of `arrays` by name: picograd's tensors on the left, PyTorch's on the
right. A row of one function is spelt alike in both.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")
F = torch.nn.functional
Call = Callable[..., Any]


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {
        "x": rng.normal(size=(3, 4)).astype(np.float32),
        "y": rng.normal(size=(3, 4)).astype(np.float32),
        "v": rng.normal(size=4).astype(np.float32),
        "u": rng.uniform(0.1, 0.9, size=(3, 4)).astype(np.float32),
        "n": rng.integers(-5, 6, size=(3, 4)),
        "k": rng.integers(0, 3, size=(2, 4)),
        "labels": np.array([1, 3, 0]),
        "image": rng.normal(size=(2, 2, 5, 5)).astype(np.float32),
        "volume": rng.normal(size=(1, 2, 3, 4, 4)).astype(np.float32),
        "signal": rng.normal(size=(2, 2, 6)).astype(np.float32),
        "w1": rng.normal(size=(3, 2, 3)).astype(np.float32),
        "w2": rng.normal(size=(3, 2, 3, 3)).astype(np.float32),
        "w3": rng.normal(size=(3, 2, 2, 2, 2)).astype(np.float32),
        "t2": rng.normal(size=(2, 3, 3, 3)).astype(np.float32),
        "t3": rng.normal(size=(2, 3, 2, 2, 2)).astype(np.float32),
        "q": rng.normal(size=(1, 4, 3, 8)).astype(np.float32),
        "kv": rng.normal(size=(1, 2, 3, 8)).astype(np.float32),
        "seen": np.tril(np.ones((3, 3), bool)),
        "b": np.array([True, False, True]),
    }


def same(call: Call) -> tuple[Call, Call]:
    return call, call


ACTIVATIONS = ("relu", "sigmoid", "relu6", "hardswish", "tanh", "hardtanh", "gelu", "leaky_relu",
    "mish", "softplus", "softsign", "elu", "selu", "celu", "silu", "hardsigmoid", "logsigmoid",
    "hardshrink", "softshrink", "tanhshrink", "glu")  # fmt: skip
ROWS: dict[str, tuple[Call, Call]] = {
    # what a tensor is, and conversions
    "T": same(lambda x: x.T),
    "ndim, shape": same(lambda x: (x.ndim, tuple(x.shape))),
    "numpy": same(lambda x: x.detach().numpy()),
    "item": same(lambda v: v[0].item()),
    "tolist": same(lambda n: n.tolist()),
    "data": same(lambda x: x.data),
    "detach": same(lambda x: x.detach()),
    "clone": same(lambda x: x.clone()),
    "contiguous": same(lambda x: x.T.contiguous()),
    "realize": (lambda x: x.realize(), lambda x: x),
    "realize several": (lambda x, y: Tensor.realize(x, y), lambda x, y: x),
    "cast": (lambda x: x.cast(picograd.int32), lambda x: x.int()),
    "cast name": (lambda x: x.cast("float64"), lambda x: x.double()),
    "bitcast": (lambda x: x.bitcast("int32"), lambda x: x.view(torch.int32)),
    "half": same(lambda x: x.half()),
    "float": same(lambda n: n.float()),
    "int": same(lambda x: x.int()),
    "bool": same(lambda n: n.bool()),
    "to": same(lambda x: x.to("cpu")),
    "to_": (lambda x: x.to_("float64"), lambda x: x.double()),
    # reductions
    **{
        f"{name} {key}": (
            lambda x, name=name, options=options: getattr(x, name)(**options),
            lambda x, name=name, theirs=theirs: getattr(x, name)(**theirs),
        )
        for name in ("sum", "mean", "amax", "amin", "argmax", "argmin", "std", "var", "prod")
        for key, options, theirs in (
            ("axis", {"axis": 1}, {"dim": 1}),
            ("dim", {"dim": -1}, {"dim": -1}),
            ("keepdim", {"axis": 0, "keepdim": True}, {"dim": 0, "keepdim": True}),
            ("keepdims", {"dim": 0, "keepdims": True}, {"dim": 0, "keepdim": True}),
        )
    },
    "sum all": same(lambda x: x.sum()),
    "sum axes": (lambda x: x.sum(axis=(0, 1)), lambda x: x.sum()),
    "sum dtype": (lambda n: n.sum(0, dtype="float64"), lambda n: n.sum(0, dtype=torch.float64)),
    "max": same(lambda x: x.max()),
    "max axis": (lambda x: x.max(axis=1)[0], lambda x: x.max(dim=1)[0]),
    "max keepdim": (lambda x: x.max(dim=1, keepdims=True)[1], lambda x: x.max(1, True)[1]),
    "min axis": (lambda x: x.min(axis=1)[1], lambda x: x.min(dim=1)[1]),
    "std correction": (lambda x: x.std(axis=1, correction=0), lambda x: x.std(1, correction=0)),
    "var correction": (
        lambda x: x.var(axis=0, keepdim=True, correction=2),
        lambda x: x.var(0, keepdim=True, correction=2),
    ),
    "std_mean": (
        lambda x: x.std_mean(axis=1, keepdims=True),
        lambda x: torch.std_mean(x, 1, keepdim=True),
    ),
    "var_mean": (
        lambda x: x.var_mean(axis=1, correction=0),
        lambda x: torch.var_mean(x, 1, correction=0),
    ),
    **{
        f"{name} {key}": (
            lambda x, name=name, key=key: getattr(x, name)(**{key: 1}),
            lambda x, name=name: getattr(x, name)(1),
        )
        for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "softmax", "squeeze")
        for key in ("axis", "dim")
    },
    "logsumexp": (lambda x: x.logsumexp(axis=1, keepdims=True), lambda x: x.logsumexp(1, True)),
    "sort": same(lambda x: tuple(x.sort(dim=0, descending=True))),
    "sort default": same(lambda x: tuple(x.sort())),
    "topk": same(lambda x: tuple(x.topk(2, dim=1, largest=False))),
    "topk default": same(lambda x: tuple(x.topk(2))),
    # movement
    "reshape": same(lambda x: x.reshape(2, -1)),
    "reshape tuple": same(lambda x: x.reshape((2, 6))),
    "view": same(lambda x: x.view(4, 3)),
    "permute": same(lambda x: x.permute(1, 0)),
    "permute dims": same(lambda x: x.permute(dims=(1, 0))),
    "transpose": same(lambda x: x.transpose(0, 1)),
    "expand": same(lambda v: v.expand(2, -1)),
    "flip": same(lambda x: x.flip(0, 1)),
    "flip dims": same(lambda x: x.flip(dims=(0,))),
    "flip axis": (lambda x: x.flip(axis=1), lambda x: x.flip(1)),
    "pad flat": (lambda x: x.pad((1, 2)), lambda x: F.pad(x, (1, 2))),
    "pad axes": (lambda x: x.pad(((0, 1), (2, 0))), lambda x: F.pad(x, (2, 0, 0, 1))),
    "pad None": (lambda x: x.pad((None, (2, 0)), value=3), lambda x: F.pad(x, (2, 0), value=3)),
    "pad negative": (lambda x: x.pad((-1, 1)), lambda x: F.pad(x, (-1, 1))),
    **{
        f"pad {mode} {pads}": (
            lambda x, mode=mode, pads=pads: x.pad(pads, mode=mode),
            lambda x, mode=mode, pads=pads: F.pad(x, pads, mode),
        )
        for mode in ("reflect", "replicate", "circular")
        for pads in ((1, 2), (-1, 2), (2, -1), (-1, -1), (-1, 3))
    },
    "shrink": (lambda x: x.shrink(((0, 2), (1, 3))), lambda x: x[0:2, 1:3]),
    "shrink None": (lambda x: x.shrink((None, (1, 1))), lambda x: x[:, 1:1]),
    "squeeze": same(lambda x: x[:1].squeeze(0)),
    "unsqueeze": same(lambda x: x.unsqueeze(dim=1)),
    "unsqueeze axis": (lambda x: x.unsqueeze(axis=-1), lambda x: x.unsqueeze(-1)),
    "flatten": same(lambda image: image.flatten(1, 2)),
    "unflatten": same(lambda x: x.unflatten(1, (2, -1))),
    "cat": (lambda x, y: x.cat(y, x, dim=1), lambda x, y: torch.cat((x, y, x), 1)),
    "cat class": (lambda x, y: Tensor.cat(x, y, dim=-1), lambda x, y: torch.cat((x, y), -1)),
    "cat list": (lambda x, y: Tensor.cat([x, y], 1), lambda x, y: torch.cat([x, y], 1)),
    "cat named": (
        lambda x, y: picograd.cat(tensors=[x, y], dim=1),
        lambda x, y: torch.cat(tensors=[x, y], dim=1),
    ),
    "stack": (lambda x, y: x.stack(y, dim=1), lambda x, y: torch.stack((x, y), 1)),
    "stack list": (lambda x, y: Tensor.stack([x, y], -1), lambda x, y: torch.stack([x, y], -1)),
    "split": same(lambda x: x.split(3, dim=1)),
    "split sizes": same(lambda x: x.split([1, 3], 1)),
    "chunk": same(lambda x: x.chunk(2, dim=1)),
    "repeat": same(lambda x: x.repeat(2, 1)),
    "repeat_interleave": same(lambda x: x.repeat_interleave(2, dim=1)),
    "roll": same(lambda x: x.roll(1, dims=0)),
    "roll axes": same(lambda x: x.roll(shifts=(1, -1), dims=(0, 1))),
    "unfold": same(lambda x: x.unfold(1, 2, 1)),
    "tril": same(lambda x: x.tril(1)),
    "triu": same(lambda x: x.triu(diagonal=-1)),
    "diag": same(lambda v: v.diag()),
    "diagonal": same(lambda x: x.diagonal(1)),
    "meshgrid": (
        lambda v, labels: v.meshgrid(labels.float(), indexing="xy"),
        lambda v, labels: torch.meshgrid(v, labels.float(), indexing="xy"),
    ),
    "meshgrid ij": (lambda v: v.meshgrid(v), lambda v: torch.meshgrid(v, v, indexing="ij")),
    "rearrange": (
        lambda image: image.rearrange("b c h w -> b h w c"),
        lambda image: image.permute(0, 2, 3, 1),
    ),
    "rearrange merge": (
        lambda image: image.rearrange("b ... w -> (b w) (...)"),
        lambda image: image.permute(0, 3, 1, 2).reshape(10, 10),
    ),
    "rearrange split": (
        lambda x: x.rearrange("a (b c) -> c 1 (a b)", c=2),
        lambda x: x.reshape(3, 2, 2).permute(2, 0, 1).reshape(2, 1, 6),
    ),
    # networks
    "conv1d": (
        lambda signal, w1: signal.conv1d(w1, padding=1),
        lambda signal, w1: F.conv1d(signal, w1, padding=1),
    ),
    "conv2d": (
        lambda image, w2: image.conv2d(w2, stride=2, padding=1),
        lambda image, w2: F.conv2d(image, w2, stride=2, padding=1),
    ),
    "conv3d": (lambda volume, w3: volume.conv3d(w3), lambda volume, w3: F.conv3d(volume, w3)),
    "conv_transpose2d": (
        lambda image, t2: image.conv_transpose2d(t2, stride=2, output_padding=1),
        lambda image, t2: F.conv_transpose2d(image, t2, stride=2, output_padding=1),
    ),
    "conv_transpose3d": (
        lambda volume, t3: volume.conv_transpose3d(t3),
        lambda volume, t3: F.conv_transpose3d(volume, t3),
    ),
    "avg_pool2d": (lambda image: image.avg_pool2d(2), lambda image: F.avg_pool2d(image, 2)),
    "avg_pool3d": (lambda volume: volume.avg_pool3d(2), lambda volume: F.avg_pool3d(volume, 2)),
    "max_pool2d": (
        lambda image: image.max_pool2d(3, stride=1, padding=1),
        lambda image: F.max_pool2d(image, 3, stride=1, padding=1),
    ),
    "max_pool3d": (lambda volume: volume.max_pool3d(2), lambda volume: F.max_pool3d(volume, 2)),
    "max_pool2d indices": (
        lambda image: image.max_pool2d(2, return_indices=True),
        lambda image: F.max_pool2d(image, 2, return_indices=True),
    ),
    "max_unpool2d": (
        lambda image: Tensor.max_unpool2d(
            *image.max_pool2d(2, return_indices=True), 2, output_size=(5, 5)
        ),
        lambda image: F.max_unpool2d(
            *F.max_pool2d(image, 2, return_indices=True), 2, output_size=(5, 5)
        ),
    ),
    "interpolate": (
        lambda image: image.interpolate(size=(3, 7), mode="bilinear", align_corners=True),
        lambda image: F.interpolate(image, size=(3, 7), mode="bilinear", align_corners=True),
    ),
    "interpolate nearest": (
        lambda image: image.interpolate((3, 7)),
        lambda image: F.interpolate(image, (3, 7)),
    ),
    "layernorm": (lambda x: x.layernorm(), lambda x: F.layer_norm(x, (4,))),
    "layernorm axis": (
        lambda image: image.layernorm(axis=(1, 2, 3), eps=1e-3),
        lambda image: F.layer_norm(image, (2, 5, 5), eps=1e-3),
    ),
    "layernorm first": (lambda x: x.layernorm(axis=0), lambda x: F.layer_norm(x.T, (3,)).T),
    "batchnorm": (
        lambda x, v, u: x.batchnorm(v, None, u[0], u[1]),
        lambda x, v, u: (x - u[0]) * u[1] * v,
    ),
    "batchnorm axis": (
        lambda image, v, u: image.batchnorm(u[0, :2], v[:2], u[0, :2], u[1, :2], axis=0),
        lambda image, v, u: (
            (image - u[0, :2].reshape(2, 1, 1, 1)) * (u[0, :2] * u[1, :2]).reshape(2, 1, 1, 1)
            + v[:2].reshape(2, 1, 1, 1)
        ),
    ),
    "dropout": (lambda x: x.dropout(0.5, training=False), lambda x: x),
    "dropout 0": (lambda x: x.dropout(p=0.0), lambda x: x),
    "dropout 1": (lambda x: x.dropout(1.0), lambda x: x * 0),
    "one_hot": (lambda labels: labels.one_hot(5), lambda labels: F.one_hot(labels, 5)),
    "one_hot default": (lambda labels: labels.one_hot(), lambda labels: F.one_hot(labels)),
    "attention": (
        lambda q: q.scaled_dot_product_attention(q, q * 2),
        lambda q: F.scaled_dot_product_attention(q, q, q * 2),
    ),
    "attention mask": (
        lambda q, seen: q.scaled_dot_product_attention(q, q, attn_mask=seen, dropout_p=0.0),
        lambda q, seen: F.scaled_dot_product_attention(q, q, q, attn_mask=seen),
    ),
    "attention causal": (
        lambda q, kv: q.scaled_dot_product_attention(kv, kv, is_causal=True, enable_gqa=True),
        lambda q, kv: F.scaled_dot_product_attention(q, kv, kv, is_causal=True, enable_gqa=True),
    ),
    "cross_entropy": (
        lambda x, labels: x.cross_entropy(labels, reduction="sum", label_smoothing=0.1),
        lambda x, labels: F.cross_entropy(x, labels, reduction="sum", label_smoothing=0.1),
    ),
    "cross_entropy soft": (lambda x, u: x.cross_entropy(u), lambda x, u: F.cross_entropy(x, u)),
    "nll_loss": (
        lambda x, labels, v: x.log_softmax(1).nll_loss(labels, v.abs(), ignore_index=3),
        lambda x, labels, v: F.nll_loss(x.log_softmax(1), labels, v.abs(), ignore_index=3),
    ),
    "binary_crossentropy": (
        lambda u: u.binary_crossentropy(u * 0.5, reduction="none"),
        lambda u: F.binary_cross_entropy(u, u * 0.5, reduction="none"),
    ),
    "binary_crossentropy_logits": (
        lambda x, u: x.binary_crossentropy_logits(u, pos_weight=u[0]),
        lambda x, u: F.binary_cross_entropy_with_logits(x, u, pos_weight=u[0]),
    ),
    "sparse_categorical_crossentropy": (
        lambda x, labels: x.sparse_categorical_crossentropy(labels, label_smoothing=0.2),
        lambda x, labels: F.cross_entropy(x, labels, label_smoothing=0.2),
    ),
    "sparse_categorical_crossentropy ignored": (
        lambda x, labels: x.sparse_categorical_crossentropy(labels, ignore_index=3),
        lambda x, labels: F.cross_entropy(x, labels, ignore_index=3),
    ),
    # activations
    **{
        name: (lambda x, name=name: getattr(x * 3, name)(), lambda x, theirs=theirs: theirs(x * 3))
        for name, theirs in {
            **{name: getattr(F, name) for name in ACTIVATIONS},
            "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
            "swish": F.silu,
        }.items()
    },
    "relu6 int": same(lambda n: n.relu()),
    "gelu tanh": (lambda x: x.gelu(approximate="tanh"), lambda x: F.gelu(x, approximate="tanh")),
    "elu alpha": (lambda x: x.elu(alpha=2.0), lambda x: F.elu(x, 2.0)),
    "celu alpha": (lambda x: x.celu(alpha=2.0), lambda x: F.celu(x, 2.0)),
    "softplus beta": (lambda x: x.softplus(beta=2.0), lambda x: F.softplus(x, 2.0)),
    "hardtanh limits": (lambda x: x.hardtanh(-0.5, 0.5), lambda x: F.hardtanh(x, -0.5, 0.5)),
    "threshold": (lambda x: x.threshold(0.1, 2.0), lambda x: F.threshold(x, 0.1, 2.0)),
    "prelu": (lambda x, v: x.prelu(v), lambda x, v: F.prelu(x, v)),
    "rrelu": (lambda x: x.rrelu(0.1, 0.3), lambda x: F.rrelu(x, 0.1, 0.3)),
    "softmin": (lambda x: x.softmin(1), lambda x: F.softmin(x, 1)),
    # indexing
    "gather": same(lambda x, k: x.gather(0, k)),
    "gather named": same(lambda x, k: x.gather(dim=0, index=k)),
    "scatter": same(lambda x, y, k: x.scatter(0, k, y)),
    "scatter named": same(lambda x, y, k: x.scatter(dim=0, index=k, src=y)),
    "scatter number": same(lambda x, k: x.scatter(0, k, 2.5)),
    "scatter add": same(lambda x, y, k: x.scatter(0, k, y, reduce="add")),
    "scatter multiply": same(lambda x, y, k: x.scatter(0, k, y, reduce="multiply")),
    "scatter_reduce": same(
        lambda x, y, k: x.scatter_reduce(0, k, y, reduce="amax", include_self=False)
    ),
    "scatter_reduce mean": same(lambda x, y, k: x.scatter_reduce(0, k, y, "mean")),
    "masked_select": same(lambda x: x.masked_select(x > 0)),
    "masked_select size": (
        lambda n: n.masked_select(n > 0, size=20, fill_value=-9),
        lambda n: F.pad(n[n > 0], (0, 20 - int((n > 0).sum())), value=-9),
    ),
    "nonzero": same(lambda n: n.nonzero()),
    "nonzero size": (
        lambda n: n.nonzero(size=20, fill_value=-9),
        lambda n: F.pad(n.nonzero(), (0, 0, 0, 20 - int((n != 0).sum())), value=-9),
    ),
    "get advanced": same(lambda x, labels, b: x[b][:, labels]),
    "get mixed": same(lambda image: image[..., 1:4:2, None, [0, 2]]),
    # arithmetic by name
    "mod": (lambda n: n.mod(3), lambda n: n.remainder(3)),
    "mod float": (lambda x: x.mod(-0.5), lambda x: x.remainder(-0.5)),
    "idiv": (lambda n: n.idiv(2), lambda n: n.div(2, rounding_mode="trunc")),
    # making tensors
    "zeros": (lambda: Tensor.zeros(2, 3), lambda: torch.zeros(2, 3)),
    "zeros tuple": (lambda: Tensor.zeros((2, 3)), lambda: torch.zeros(2, 3)),
    "ones": (lambda: Tensor.ones(2, dtype="int64"), lambda: torch.ones(2, dtype=torch.int64)),
    "full": (lambda: Tensor.full((2,), 7), lambda: torch.full((2,), 7)),
    "arange": (lambda: Tensor.arange(5), lambda: torch.arange(5)),
    "arange step": (lambda: Tensor.arange(1, 2, 0.25), lambda: torch.arange(1, 2, 0.25)),
    "linspace": (lambda: Tensor.linspace(0, 1, 5), lambda: torch.linspace(0, 1, 5)),
    "eye": (lambda: Tensor.eye(2, 3), lambda: torch.eye(2, 3)),
    "empty": (lambda: Tensor.empty(2, 3).shape, lambda: torch.empty(2, 3).shape),
    "zeros_like": (lambda n: n.zeros_like(), lambda n: torch.zeros_like(n)),
    "ones_like": (
        lambda n: n.ones_like(dtype="float32"),
        lambda n: torch.ones_like(n, dtype=torch.float32),
    ),
    "full_like": (lambda x: x.full_like(2), lambda x: torch.full_like(x, 2)),
    "rand_like": (lambda x: x.rand_like().shape, lambda x: x.shape),
    "randn_like": (lambda x: Tensor.randn_like(x).shape, lambda x: x.shape),
}


def plain(value: Any) -> Any:
    """Turn results into arrays, tuples and numbers."""
    if isinstance(value, (Tensor, torch.Tensor)):
        return value.detach().cpu().numpy()
    if isinstance(value, (tuple, list)) and any(
        isinstance(each, (Tensor, torch.Tensor)) for each in value
    ):
        return tuple(map(plain, value))
    return tuple(value) if isinstance(value, torch.Size) else value


def check(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)
    elif isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            check(a, b)
    else:
        assert ours == theirs


def called(call: Call, make: Callable[[Any], Any]) -> Any:
    wanted = [
        name
        for name, each in inspect.signature(call).parameters.items()
        if each.default is inspect.Parameter.empty
    ]
    given = arrays()
    return plain(call(*(make(given[name]) for name in wanted)))


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("row", ROWS)
def test_spelling(row: str, device: str) -> None:
    ours, theirs = ROWS[row]
    if device != "cpu" and "to" == row:
        pytest.skip("moves to the CPU")
    check(
        called(ours, lambda value: Tensor(value, device=device)),
        called(theirs, lambda value: torch.from_numpy(np.array(value))),
    )


def test_gradients_of_the_methods(device: str) -> None:
    """The functions compose methods: one sum over all of them has PyTorch's gradient."""
    names = [name for name in ACTIVATIONS if name != "glu"]
    values = arrays()["x"] * 3
    ours = Tensor(values, device=device, requires_grad=True)
    theirs = torch.tensor(values, requires_grad=True)
    labels = [1, 3, 0]
    total = sum(getattr(ours, name)().sum() for name in names)
    (
        total
        + ours.layernorm(axis=0).square().sum()
        + ours.cross_entropy(Tensor(labels, device=device))
    ).backward()
    wanted = sum(getattr(F, name)(theirs).sum() for name in names)
    norm = F.layer_norm(theirs.T, (3,)).square().sum()
    (wanted + norm + F.cross_entropy(theirs, torch.tensor(labels))).backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_backward_and_gradient() -> None:
    x, w = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0], requires_grad=True)
    (x * w).backward(gradient=Tensor([10.0, 1.0]))
    assert x.grad.tolist() == [30.0, 4.0]
    found = (x * w).sum().gradient(x, w)
    assert isinstance(found, list)
    assert [each.tolist() for each in found] == [[3.0, 4.0], [1.0, 2.0]]


def test_advanced_setitem(device: str) -> None:
    ours, theirs = Tensor(arrays()["x"], device=device), torch.from_numpy(arrays()["x"])
    rows = np.array([2, 0])
    ours[Tensor(rows, device=device), 1:3] = 7.0
    theirs[torch.from_numpy(rows), 1:3] = 7.0
    ours[ours < 0] = 0.5
    theirs[theirs < 0] = 0.5
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_to_in_place() -> None:
    x = Tensor([1.5, 2.5], requires_grad=True)
    (x * 2).sum().backward()
    assert x.to_("float64") is x
    assert (x.dtype, x.grad.dtype, x.is_leaf) == (picograd.float64, picograd.float64, True)
    assert x.to_("cpu").requires_grad
    with pytest.raises(RuntimeError, match="a computed tensor that tracks gradients cannot move"):
        (x * 2).to_("float32")


def test_random_integers_and_dropout() -> None:
    for draw in (
        lambda: Tensor.randint(2, 5, (40,)),
        lambda: Tensor.randint(2, 5, size=(40,)),
        lambda: Tensor.randint(low=2, high=5, size=(40,)),
        lambda: Tensor.randint(2, high=5, size=[40]),
        lambda: Tensor.randint(40, low=2, high=5),
        lambda: Tensor.randint((40,), low=2, high=5),
        lambda: Tensor.randint(3, (40,)) + 2,
        lambda: Tensor.randint(3, size=40) + 2,
    ):
        drawn = draw()
        assert drawn.shape == (40,) and set(drawn.tolist()) == {2, 3, 4}
    assert Tensor.randint(3, (2,), dtype="int32").dtype is picograd.int32
    assert sorted(Tensor.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert Tensor([0.0, 1.0]).multinomial(1).tolist() == [1]
    kept = Tensor.ones(4000).dropout(0.25).numpy()
    assert set(np.unique(kept)) == {0.0, np.float32(1 / 0.75)}
    assert abs((kept == 0).mean() - 0.25) < 0.03
    assert Tensor.ones(64).gumbel_softmax(hard=True).sum().item() == pytest.approx(1.0)


@pytest.mark.usefixtures("cpu_by_default")
def test_autocast_knows_the_methods() -> None:
    x, labels = Tensor.ones(2, 4), Tensor([0, 1])
    with picograd.autocast("cpu"):
        low = x @ x.T
        assert low.dtype is picograd.bfloat16
        assert low.cross_entropy(labels).dtype is picograd.float32
        assert low.nll_loss(labels).dtype is picograd.float32
        assert low.binary_crossentropy_logits(low.sigmoid()).dtype is picograd.float32
        assert x.scaled_dot_product_attention(x, x).dtype is picograd.bfloat16
        assert x.prelu(Tensor([0.5])).dtype is picograd.bfloat16


WRONG: dict[str, tuple[Call, type[Exception]]] = {
    "zeros": (lambda x: Tensor.zeros(2, -1), RuntimeError),
    "ones": (lambda x: Tensor.ones((-2,)), RuntimeError),
    "rand": (lambda x: Tensor.rand(-1), RuntimeError),
    "full": (lambda x: Tensor.full((-1,), 2), RuntimeError),
    "eye": (lambda x: Tensor.eye(-1), RuntimeError),
    "kaiming_uniform": (lambda x: Tensor.kaiming_uniform(-1, 2), RuntimeError),
    "glorot_uniform": (lambda x: Tensor.glorot_uniform(), RuntimeError),
    "reshape": (lambda x: x.reshape(5), RuntimeError),
    "sum": (lambda x: x.sum(axis=2), IndexError),
    "both": (lambda x: x.sum(0, dim=0), TypeError),
    "permute": (lambda x: x.permute(0, 0), RuntimeError),
    "transpose": (lambda x: x.transpose(0, 2), IndexError),
    "expand": (lambda x: x.expand(5, 4), RuntimeError),
    "cat": (lambda x: x.cat(x[:1], dim=1), RuntimeError),
    "cat arguments": (lambda x: Tensor.cat([x], 0, 1), TypeError),
    "cat axis": (lambda x: x.cat(x, dim=2), IndexError),
    "stack": (lambda x: x.stack(x[:1]), RuntimeError),
    "pad": (lambda x: x.pad((1, 2, 3)), RuntimeError),
    "pad reflect": (lambda x: x.pad((4, 0), mode="reflect"), RuntimeError),
    "shrink": (lambda x: x.shrink(((0, 4), None)), RuntimeError),
    "shrink rank": (lambda x: x.shrink((None,)), RuntimeError),
    "split": (lambda x: x.split([1, 1]), RuntimeError),
    "unflatten": (lambda x: x.unflatten(1, (3, 2)), RuntimeError),
    "gather": (lambda x: x.gather(0, x), TypeError),
    "one_hot": (lambda x: Tensor([], dtype="int64").one_hot(), RuntimeError),
    "item": (lambda x: x.item(), RuntimeError),
    "dropout": (lambda x: x.dropout(1.5), ValueError),
    "batchnorm": (lambda x: x.batchnorm(None, None, x[0], x[0, :2]), RuntimeError),
    "layernorm": (lambda x: x.layernorm(axis=2), IndexError),
    "cross_entropy": (lambda x: x.cross_entropy(Tensor([1, 2])), ValueError),
    "labels": (lambda x: x.cross_entropy(Tensor([1, 2, 4], device=x.device)), IndexError),
    "attention": (lambda x: x.scaled_dot_product_attention(x, x, x, is_causal=True), RuntimeError),
    "backward": (lambda x: Tensor([1]).backward(), RuntimeError),
    "randint": (lambda x: Tensor.randint(1, 2, 3, (2,)), TypeError),
    "no tensor": (lambda x: Tensor.mish(3.0), TypeError),
}


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.parametrize("name", WRONG)
def test_exceptions_are_those_of_pytorch(name: str) -> None:
    call, kind = WRONG[name]
    with pytest.raises(kind) as error:
        call(Tensor(arrays()["x"], device="cpu"))
    assert isinstance(error.value, picograd.errors.PicogradError)
