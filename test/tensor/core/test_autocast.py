"""Autocast: dtypes op by op against PyTorch's, gradients, regions, `jit`; and training (M54)."""

import threading

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine.tracing import OPEN
from picograd.errors import DeviceError, DTypeError, GradientError
from picograd.tensor.core import autocast

pytestmark = pytest.mark.usefixtures("cpu_by_default")
torch = pytest.importorskip("torch")
X = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)


def either(room, functional, name):
    """Find an operation where it is: picograd has some in the root, PyTorch in functional."""
    return getattr(functional, name, None) or getattr(room, name)


# Each takes the room (picograd or torch), its nn.functional, and a matrix.
OPS = {
    "matmul": lambda p, f, x: x @ x,
    "vector": lambda p, f, x: x @ x[0],
    "mm": lambda p, f, x: x.mm(x),
    "bmm": lambda p, f, x: x[None].bmm(x[None]),
    "mv": lambda p, f, x: p.mv(x, x[0]),
    "dot": lambda p, f, x: p.dot(x[0], x[0]),
    "outer": lambda p, f, x: p.outer(x[0], x[0]),
    "addmm": lambda p, f, x: p.addmm(x, x, x),
    "baddbmm": lambda p, f, x: p.baddbmm(x[None], x[None], x[None]),
    "linear": lambda p, f, x: f.linear(x, x, x[0]),
    "einsum": lambda p, f, x: p.einsum("ij,jk->ik", x, x),
    "tensordot": lambda p, f, x: p.tensordot(x, x, 1),
    "inner": lambda p, f, x: p.inner(x, x),
    "kron": lambda p, f, x: p.kron(x, x),
    "conv2d": lambda p, f, x: p.conv2d(x[None, None], x[None, None]),
    "conv1d": lambda p, f, x: p.conv1d(x[None], x[None]),
    "conv_transpose2d": lambda p, f, x: p.conv_transpose2d(x[None, None], x[None, None]),
    "attention": lambda p, f, x: f.scaled_dot_product_attention(x[None], x[None], x[None]),
    "prelu": lambda p, f, x: f.prelu(x, x[0, :1]),
    "add": lambda p, f, x: x + x,
    "exp": lambda p, f, x: x.exp(),
    "pow": lambda p, f, x: x**2,
    "rsqrt": lambda p, f, x: x.rsqrt(),
    "tanh": lambda p, f, x: x.tanh(),
    "gelu": lambda p, f, x: f.gelu(x),
    "sum": lambda p, f, x: x.sum(),
    "sum_dtype": lambda p, f, x: x.sum(dtype=p.float32),
    "prod": lambda p, f, x: x.prod(),
    "mean": lambda p, f, x: x.mean(0),
    "var": lambda p, f, x: x.var(),
    "norm": lambda p, f, x: x.norm(),
    "softmax": lambda p, f, x: x.softmax(0),
    "log_softmax": lambda p, f, x: x.log_softmax(0),
    "logsumexp": lambda p, f, x: x.logsumexp(0),
    "cumsum": lambda p, f, x: x.cumsum(0),
    "cumprod": lambda p, f, x: x.cumprod(0),
    "layer_norm": lambda p, f, x: f.layer_norm(x, (4,), x[0], x[0]),
    "group_norm": lambda p, f, x: f.group_norm(x, 2, x[0], x[0]),
    "cat": lambda p, f, x: p.cat([x, x]),
    "cat_mixed": lambda p, f, x: p.cat([x, x.float()]),
    "stack_mixed": lambda p, f, x: p.stack([x, x.float()]),
    "cdist": lambda p, f, x: p.cdist(x, x),
    "trace": lambda p, f, x: p.trace(x),
    "quantile": lambda p, f, x: x.quantile(0.5),
    "avg_pool2d": lambda p, f, x: either(p, f, "avg_pool2d")(x[None, None], 2),
    "avg_pool3d": lambda p, f, x: either(p, f, "avg_pool3d")(x[None, None, None], (1, 2, 2)),
    "max_pool2d": lambda p, f, x: either(p, f, "max_pool2d")(x[None, None], 2),
    "max_pool3d": lambda p, f, x: either(p, f, "max_pool3d")(x[None, None, None], (1, 2, 2)),
    "reflect": lambda p, f, x: f.pad(x[None, None], (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda p, f, x: f.pad(x[None, None], (1, 1, 1, 1), mode="replicate"),
    "circular": lambda p, f, x: f.pad(x[None, None], (1, 1, 1, 1), mode="circular"),
    "interpolate": lambda p, f, x: f.interpolate(x[None, None], scale_factor=2),
    "cosine_similarity": lambda p, f, x: f.cosine_similarity(x, x + 1),
    "mse_loss": lambda p, f, x: f.mse_loss(x, x * 2),
    "l1_loss": lambda p, f, x: f.l1_loss(x, x * 2),
    "smooth_l1_loss": lambda p, f, x: f.smooth_l1_loss(x, x * 2),
    "huber_loss": lambda p, f, x: f.huber_loss(x, x * 2),
    "kl_div": lambda p, f, x: f.kl_div(x, x.softmax(1), reduction="sum"),
    "cross_entropy": lambda p, f, x: f.cross_entropy(x, p.arange(4)),
    "nll_loss": lambda p, f, x: f.nll_loss(x, p.arange(4)),
    "poisson_nll_loss": lambda p, f, x: f.poisson_nll_loss(x, x.abs()),
    "gaussian_nll_loss": lambda p, f, x: f.gaussian_nll_loss(x, x, x.abs()),
    "bce": lambda p, f, x: f.binary_cross_entropy(x.sigmoid(), x.sigmoid()),
    "bce_logits": lambda p, f, x: f.binary_cross_entropy_with_logits(x, x.sigmoid()),
    "multilabel_margin_loss": lambda p, f, x: f.multilabel_margin_loss(x, p.zeros(4, 4).long()),
    "ctc_loss": lambda p, f, x: f.ctc_loss(
        x[:, None].log_softmax(-1), p.ones(1, 2).long(), p.ones(1).long() * 4, p.ones(1).long() * 2
    ),
    "bilinear": lambda p, f, x: f.bilinear(x, x, p.ones(2, 4, 4).to(x.dtype)),
    "rms_norm": lambda p, f, x: f.rms_norm(x, (4,), x[0]),
    "grid_sample": lambda p, f, x: f.grid_sample(
        x[None, None], p.zeros(1, 2, 2, 2), align_corners=False
    ),
    "nanquantile": lambda p, f, x: p.nanquantile(x, 0.5),
    "fft": lambda p, f, x: p.fft.rfft(x).real,
    "inverse": lambda p, f, x: p.linalg.inv(x + 5.0 * p.eye(4)),
    "normalize": lambda p, f, x: f.normalize(x),
    "index_copy": lambda p, f, x: p.index_copy(x.float(), 0, p.zeros(1).long(), x[:1]),
    "soft_margin_loss": lambda p, f, x: f.soft_margin_loss(x, x.sign()),
    "hinge_embedding_loss": lambda p, f, x: f.hinge_embedding_loss(x, x.sign()),
    "margin_ranking_loss": lambda p, f, x: f.margin_ranking_loss(x, x + 1, x.sign()),
    "triplet_margin_loss": lambda p, f, x: f.triplet_margin_loss(x, x + 1, x + 2),
    "multi_margin_loss": lambda p, f, x: f.multi_margin_loss(x, p.arange(4)),
    "cosine_embedding_loss": lambda p, f, x: f.cosine_embedding_loss(x, x + 1, p.ones(4)),
    "integers": lambda p, f, x: p.arange(4) * 2,
}


def name_of(dtype):
    return getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dtypes_equal_pytorchs(dtype):
    """Only the recorded dtype counts: nothing is computed here."""
    wrong = {}
    for name, function in OPS.items():
        theirs = torch.tensor(X).to(getattr(torch, dtype))
        with torch.autocast("cpu", torch.bfloat16):
            wanted = name_of(function(torch, torch.nn.functional, theirs).dtype)
        ours = Tensor(X, device="cpu").cast(dtype)
        with picograd.autocast("cpu"):
            found = name_of(function(picograd, nn.functional, ours).dtype)
        if found != wanted:
            wrong[name] = f"{found}, not {wanted}"
    assert not wrong


def test_float64_stays():
    x = Tensor(X.astype(np.float64), device="cpu")
    with picograd.autocast("cpu"):
        assert (x @ x).dtype is picograd.float64


def test_rules_of_cuda(monkeypatch):
    """PyTorch's list for CUDA, followed on the CPU: what loses digits computes in float32."""
    monkeypatch.setitem(autocast.RULES, "cpu", autocast.RULES["cuda"])
    wide = """exp pow rsqrt sum sum_dtype prod norm softmax log_softmax logsumexp cumsum cumprod
        layer_norm group_norm rms_norm cdist cosine_similarity normalize"""
    narrow = "matmul vector mv addmm linear conv2d attention add tanh gelu mean var dot cat trace"
    x = Tensor(X, device="cpu").bfloat16()
    with picograd.autocast("cpu"):
        found = {name: OPS[name](picograd, nn.functional, x).dtype.name for name in OPS
                 if name in wide.split() + narrow.split()}  # fmt: skip
    assert found == {name: "float32" if name in wide.split() else "bfloat16" for name in found}
    assert len(found) == len(wide.split()) + len(narrow.split())


def test_cuda_has_its_own_rules():
    """On CUDA what loses digits computes in float32: PyTorch's list for that device."""
    cpu, cuda = autocast.RULES["cpu"], autocast.RULES["cuda"]
    for name in ("exp", "log", "pow", "softmax", "log_softmax", "sum", "cumsum", "layer_norm"):
        assert cuda[name] == "float32" and name not in cpu
    assert cuda["matmul"] == cpu["matmul"] == "lower" and cuda["binary_cross_entropy"] == "refused"
    with picograd.autocast("cuda"):
        assert autocast.target_dtype("lower", "cuda", [picograd.float32]) is picograd.float16
        x = Tensor(X, device="cpu")
        assert (x @ x).dtype is picograd.float32  # another device


def test_gradients_of_weights_are_float32(device):
    """Casts have gradients; values are those of 16-bit products."""
    weight = nn.Parameter(Tensor(X, device=device))
    theirs = torch.tensor(X, requires_grad=True)
    with picograd.autocast(device, dtype="bfloat16"):
        loss = nn.functional.mse_loss(Tensor(X, device=device) @ weight, Tensor(X, device=device))
    with torch.autocast("cpu", torch.bfloat16):
        wanted = torch.nn.functional.mse_loss(torch.tensor(X) @ theirs, torch.tensor(X))
    loss.backward()
    wanted.backward()
    assert loss.dtype is weight.grad.dtype is picograd.float32
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-2)
    np.testing.assert_allclose(weight.grad.numpy(), theirs.grad.numpy(), rtol=0.05, atol=0.02)


def test_regions_nest_and_end():
    x, before = Tensor(X, device="cpu"), len(OPEN)
    with picograd.autocast("cpu"):
        assert picograd.is_autocast_enabled("cpu") and not picograd.is_autocast_enabled("cuda")
        with picograd.autocast("cpu", enabled=False):
            assert (x @ x).dtype is picograd.float32
            with picograd.autocast("cpu", dtype="float16"):
                assert (x @ x).dtype is picograd.float16 is picograd.get_autocast_dtype("cpu")
        assert (x @ x).dtype is picograd.bfloat16
        with picograd.autocast("cpu", dtype=picograd.float32):
            assert not picograd.is_autocast_enabled()
    assert (x @ x).dtype is picograd.float32
    with pytest.raises(ZeroDivisionError), picograd.autocast("cpu"):
        1 / 0
    assert not picograd.is_autocast_enabled()
    assert len(OPEN) == before  # machine code need not look for regions


def test_it_decorates():
    @picograd.amp.autocast("cpu")
    def product(x):
        """Multiply."""
        return x @ x

    assert product.__doc__ == "Multiply." and product(Tensor(X)).dtype is picograd.bfloat16
    assert not picograd.is_autocast_enabled()


def test_threads_have_their_own_regions():
    found = []
    with picograd.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(picograd.is_autocast_enabled()))
        thread.start()
        thread.join()
    assert found == [False]


def test_jit_traces_again_for_another_state(device):
    @picograd.jit
    def product(x):
        return x @ x

    @picograd.jit
    def inside(x):
        with picograd.autocast(device, dtype="bfloat16"):
            return x @ x

    x = Tensor(X, device=device)
    for _ in range(2):
        assert product(x).dtype is picograd.float32
        with picograd.autocast(device, dtype="bfloat16"):
            assert product(x).dtype is picograd.bfloat16
        assert inside(x).dtype is picograd.bfloat16
    assert product.traces == 2 and inside.traces == 1


LAYERS = {
    "Linear": lambda room: (room.Linear(4, 3), (2, 4)),
    "Conv2d": lambda room: (room.Conv2d(4, 3, 2), (2, 4, 3, 3)),
    "ConvTranspose2d": lambda room: (room.ConvTranspose2d(4, 3, 2), (2, 4, 3, 3)),
    "LayerNorm": lambda room: (room.LayerNorm(4), (2, 4)),
    "GroupNorm": lambda room: (room.GroupNorm(2, 4), (2, 4, 3)),
    "BatchNorm2d": lambda room: (room.BatchNorm2d(4), (2, 4, 3, 3)),
    "MultiheadAttention": lambda room: (room.MultiheadAttention(4, 2), (2, 5, 4)),
    "GRU": lambda room: (room.GRU(4, 3), (2, 5, 4)),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_have_pytorchs_dtypes(name, dtype):
    mine, shape = LAYERS[name](nn)
    theirs, _ = LAYERS[name](torch.nn)
    count = 3 if name == "MultiheadAttention" else 1  # query, key and value
    with picograd.autocast("cpu"):
        found = mine(*[Tensor(np.ones(shape, np.float32)).cast(dtype)] * count)
    with torch.autocast("cpu", torch.bfloat16):
        wanted = theirs(*[torch.ones(shape).to(getattr(torch, dtype))] * count)
    found, wanted = (y[0] if isinstance(y, tuple) else y for y in (found, wanted))
    assert name_of(found.dtype) == name_of(wanted.dtype)


def train(make, shape, is_mixed, device):
    """Train a small network on the same batches; returns the last loss."""
    picograd.manual_seed(0)
    model = make().to(device)
    optimizer = nn.optim.Adam(model.parameters(), lr=0.01)
    draw = np.random.default_rng(1)
    data = draw.normal(size=(32, *shape)).astype(np.float32)
    labels = (data.reshape(32, -1)[:, :3].argmax(1)).astype(np.int64)

    @picograd.jit
    def step(x, y):
        optimizer.zero_grad()
        with picograd.autocast(device, dtype="bfloat16", enabled=is_mixed):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = Tensor(data, device=device), Tensor(labels, device=device)
    losses = [step(x, y).item() for _ in range(60)]
    assert {p.dtype.name for p in model.parameters()} == {"float32"}
    return losses[0], losses[-1]


def perceptron():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def convolutional():
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 3))


@pytest.mark.parametrize("make, shape", [(perceptron, (8,)), (convolutional, (1, 4, 4))])
def test_training_reaches_the_loss_of_float32(make, shape, device):
    """M54: a network trained in mixed precision ends within 0.005 of float32's loss."""
    first, wanted = train(make, shape, False, device)
    _, found = train(make, shape, True, device)
    assert wanted < first / 3 and abs(found - wanted) < 0.005


def test_wrong_use_is_named():
    with pytest.raises(DTypeError, match="int64 is no dtype of mixed precision"):
        picograd.autocast("cpu", dtype="int64")
    with pytest.raises(DeviceError, match="'tpu' is no device of mixed precision"):
        picograd.autocast("tpu")
    with pytest.raises(GradientError, match="unsafe inside autocast"):
        autocast.check_rule("binary_cross_entropy", "cuda")


def test_what_is_stamped_out_casts_its_operands(monkeypatch):
    monkeypatch.setattr(picograd.config, "verify", 0)
    layer, x = nn.Linear(4, 4), Tensor(X, requires_grad=True)
    y, bits = nn.functional.linear, {}
    for number in range(8):
        x.grad = None
        with picograd.autocast("cpu", dtype=["bfloat16", "float16"][number % 2]):
            found = y(x, layer.weight, layer.bias) if number < 6 else y(x, x, layer.bias)
        found.float().sum().backward()
        assert found.dtype is [picograd.bfloat16, picograd.float16][number % 2]
        assert x.grad.dtype is picograd.float32
        values = found.float().numpy(), x.grad.numpy()
        for one, other in zip(bits.setdefault((number % 2, number < 6), values), values):
            np.testing.assert_array_equal(one, other)
    outside = y(x, layer.weight, layer.bias)
    assert outside.dtype is picograd.float32
    np.testing.assert_allclose(bits[0, True][0], outside.detach().numpy(), atol=0.05)
    squares = X @ X.T + layer.bias.detach().numpy()
    np.testing.assert_allclose(bits[1, False][0], squares, atol=0.05)
