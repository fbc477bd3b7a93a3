"""Marked sizes of a jitted function's arguments: one trace serves all of them, and is right."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Dim, Tensor, nn
from picograd.config import config

F = nn.functional
RANDOM = np.random.default_rng(0)
W = picograd.tensor(RANDOM.standard_normal((6, 6)).astype(np.float32))
LSTM = nn.LSTM(6, 4, batch_first=True)
SIZES = (4, 5, 9, 2, 1, 6)


def rows(count: int) -> Tensor:
    values = np.random.default_rng(count).standard_normal((count, 6))
    return picograd.tensor(values.astype(np.float32))


def written(x: Tensor) -> Tensor:
    y = x * 1
    y[0], y[-1] = x.shape[0], 0.5
    y[1:, 0] = x[:-1, 0]
    return y


FOLLOWED = {
    "reductions": lambda x: x.mean() + x.var(0) + x.sum(1, keepdim=True) * x.shape[0],
    "products": lambda x: (x @ W) @ (x @ W).T,
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "softmax": lambda x: x.softmax(0).log_softmax(1) / x.numel(),
    "positions": lambda x: x[-1] + x[x.shape[0] // 2] * x.size(0),
    "joined": lambda x: picograd.cat([x, x * 2, x[:1]]).reshape(-1, 3),
    "made": lambda x: picograd.zeros(x.shape[0], 2) + 1 + picograd.arange(x.shape[0])[:, None],
    "masked": lambda x: (x @ x.T).tril().masked_fill(picograd.eye(x.shape[0]) == 1, x.shape[0]),
    "window": lambda x: F.pad(x, (0, 0, 1, 2)).unfold(0, 2, 1).sum(-1),
    "norm": lambda x: F.layer_norm(x, (6,)) + F.normalize(x, dim=0),
    "loss": lambda x: F.cross_entropy(x, picograd.arange(x.shape[0]) % 6),
    "gather": lambda x: x[picograd.arange(x.shape[0]) // 2] + x.flip(0),
    "gradient": lambda x: picograd.func.grad(lambda y: (y * y.mean()).square().mean())(x),
}  # fmt: skip
OTHERS = {
    "half": lambda x: x[:x.shape[0] // 2 + 1].sum(0),
    "branch": lambda x: x * 2 if x.shape[0] > 4 else x * 3,
    "written": written,
    "length": lambda x: x * len(x),
    "loop": lambda x: sum([x[k] for k in range(x.shape[0])]),
    "scan": lambda x: picograd.scan(lambda c, row: (c + row, c), x[0] * 0, x)[0],
    "lstm": lambda x: LSTM(x[None])[0],
    "sorted": lambda x: x.sort(0)[0] + x.cumsum(0),
    "host": lambda x: picograd.linalg.inv(x.T @ x + picograd.eye(6)),
    "custom": lambda x: F.gelu(x) + x.clamp(0.1, 0.5),
    "pieces": lambda x: x.split(1)[0] + x.chunk(2, 1)[1].sum(),
}  # fmt: skip


def compare(function: Any, jitted: Any, sizes: Any = SIZES) -> None:
    for count in (*sizes, *sizes[:2]):
        found, wanted = jitted(rows(count)), function(rows(count))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", FOLLOWED)
def test_one_trace_serves_all_sizes(name: str) -> None:
    f = picograd.jit(FOLLOWED[name], dynamic={"x": {0: Dim("rows", 1, 16)}})
    compare(FOLLOWED[name], f)
    assert f.count <= 1 + (name in ("gather", "gradient"))


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_followed_is_traced_again(name: str) -> None:
    compare(OTHERS[name], picograd.jit(OTHERS[name], dynamic=True))


def test_a_training_step_with_batches_of_any_size() -> None:
    losses = []
    for is_jitted in (True, False):
        picograd.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = nn.optim.Adam(model.parameters(), lr=0.01)

        def step(x: Tensor, y: Tensor, model: Any = model, optimizer: Any = optimizer) -> Tensor:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        batch = Dim("batch", 2, 16)
        run = picograd.jit(step, dynamic={"x": {0: batch}, "y": {0: batch}}) if is_jitted else step
        losses.append([run(rows(n), rows(n)[:, :1]).item() for n in (8, 8, 5, 3, 8, 2, 16)])
        assert not is_jitted or run.count <= 2  # the optimizer's state is made in the first
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_gradients_of_outputs_are_those_of_the_sizes_of_the_call() -> None:
    weight = picograd.tensor(np.ones((6, 2), np.float32), requires_grad=True)
    f = picograd.jit(lambda x, k: (x @ weight).sum(1) * k / x.shape[0], dynamic={"x": 0})
    for count, factor in ((4, 2.0), (7, 0.5), (3, 1.5), (7, 2.5)):
        weight.grad = None
        f(rows(count), factor).sum().backward()
        wanted = rows(count).numpy().sum(0) * factor / count
        np.testing.assert_allclose(weight.grad.numpy()[:, 0], wanted, rtol=1e-5)
    assert f.count <= 2


def test_positions_and_sizes_are_followed_together() -> None:
    def store(x: Tensor, cache: Tensor, at: int) -> Tensor:
        cache[at : at + x.shape[0]] = x
        return cache[at] + x.sum(0) * at

    f = picograd.jit(store, dynamic={"x": {0: 8}})
    for count, at in ((3, 0), (2, 5), (4, 3), (3, 2), (5, 4), (5, 1)):
        caches = picograd.zeros(12, 6), picograd.zeros(12, 6)
        found, wanted = f(rows(count), caches[0], at), store(rows(count), caches[1], at)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)
        np.testing.assert_array_equal(caches[0].numpy(), caches[1].numpy())
    assert f.count <= 3


class Decoder(nn.Module):
    """One layer of attention to what a cache holds."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.places = nn.Embedding(7, 4), nn.Embedding(40, 4)
        self.inner, self.outer = nn.Linear(4, 12), nn.Linear(4, 7)
        self.register_buffer("kept", picograd.zeros(2, 1, 2, 40, 2))

    def split(self, tokens: Tensor, at: int) -> Any:
        x = self.embedding(tokens) + self.places(at + picograd.arange(tokens.shape[1]))
        parts = self.inner(x).chunk(3, -1)
        return [each.reshape(*tokens.shape, 2, 2).transpose(1, 2) for each in parts]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, at: int) -> Tensor:
        mask = picograd.arange(k.shape[2]) <= at + picograd.arange(q.shape[2])[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.outer(y.transpose(1, 2).reshape(1, q.shape[2], 4)[:, -1])

    def forward(self, tokens: Tensor, at: int = 0) -> Tensor:
        q, k, v = self.split(tokens, at)
        self.kept[0][:, :, at : at + tokens.shape[1]] = k
        self.kept[1][:, :, at : at + tokens.shape[1]] = v
        return self.attend(q, self.kept[0], self.kept[1], at)

    def shown(self, tokens: Tensor, at: int = 0) -> Tensor:
        """Attend to what the cache holds so far, and to nothing else."""
        q, k, v = self.split(tokens, at)
        until = at + tokens.shape[1]
        self.kept[0][:, :, at:until], self.kept[1][:, :, at:until] = k, v
        return self.attend(q, self.kept[0][:, :, :until], self.kept[1][:, :, :until], at)

    def grown(self, tokens: Tensor, past: Any = None) -> Any:
        at = 0 if past is None else past[0].shape[2]
        q, k, v = self.split(tokens, at)
        if past is not None:
            k, v = picograd.cat([past[0], k], 2), picograd.cat([past[1], v], 2)
        return self.attend(q, k, v, at), (k, v)


def test_decoding_is_traced_once_for_prompts_and_once_for_steps() -> None:
    """One cache is written in place at a position, the other grows; returned views are no state."""
    model, length = Decoder(), Dim("length", 1, 16)
    filled = picograd.jit(model, dynamic={"tokens": {1: length}})
    marks = {"tokens": {1: length}, "past": {2: Dim("past", 1, 40)}}
    grown = picograd.jit(model.grown, dynamic=marks)
    with picograd.no_grad():
        for count in (5, 3):
            tokens = picograd.arange(count)[None] % 7
            found, past = filled(tokens), None
            other, past = grown(tokens)
            for at in range(count, count + 3):
                wanted, _ = model.grown(picograd.arange(at)[None] % 7)
                np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(other.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
                token = picograd.tensor([[at % 7]])
                found = filled(token, at)
                other, past = grown(token, past)
    assert filled.count == 2 and grown.count == 2


@pytest.mark.parametrize("counts", [(5, 1, 3), (1, 5)])
def test_a_prompt_of_one_token_is_a_step(counts: Any) -> None:
    """Its cache has one row, and a trace stands for that too: sizes that follow are not 1."""
    model, other = Decoder(), Decoder()
    other.load_state_dict(model.state_dict())
    shown = picograd.jit(model.shown, dynamic={"tokens": {1: Dim("length", 1, 16)}})
    with picograd.no_grad():
        for count in counts:
            tokens = picograd.arange(count)[None] % 7
            found, wanted = shown(tokens, 0), other.shown(tokens, 0)
            for at in range(count, count + 3):
                np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
                token = picograd.tensor([[at % 7]])
                found, wanted = shown(token, at), other.shown(token, at)
    assert shown.count == 2


FOLLOWING = {
    "broadcast": lambda x, n: x[:n] + x[:1] * picograd.arange(n)[:, None] - x[:n, :1],
    "sum": lambda x, n: x[:n].sum(0) + x[:n].mean(0, keepdim=True) + x[:n].amax(0),
    "cumsum": lambda x, n: x[:n].cumsum(0) * x[:n].softmax(0),
    "batch": lambda x, n: x[:n, None] @ W + x[:n].reshape(n, 2, 3) @ W[:3],
    "outer": lambda x, n: x[:n, None] * x[None, :n] + W[:1],
    "where": lambda x, n: picograd.where(x[:n] > 0, x[:n, :1], x[:1]).norm(dim=0),
    "expand": lambda x, n: x[:1].expand(n, 6) @ x[:n].T,
}  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_size_that_follows_from_a_position_may_be_one(name: str) -> None:
    function = FOLLOWING[name]
    for order in ((4, 1, 3, 7), (1, 4, 7, 1)):
        f = picograd.jit(function, dynamic={"x": {0: Dim("rows", 1, 16)}})
        for n in order:
            found, wanted = f(rows(8 + n), n), function(rows(8 + n), n)
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-4, atol=1e-5)
        assert f.count == 1


def test_numbers_that_say_a_size_have_graphs_of_their_own() -> None:
    for f in (lambda x, n: x[:n] * 1, lambda x, n: (x * n)[1:n].sum() + picograd.zeros(n).sum()):
        jitted = picograd.jit(f, dynamic={"x": {0: 16}})
        for n in (3, 5, 2, 6, 3, 5):
            x = picograd.arange(8.0 + n % 2)
            np.testing.assert_allclose(jitted(x, n).numpy(), f(x, n).numpy())
        assert jitted.count <= 2


def test_random_numbers_are_those_of_the_sizes_of_the_call() -> None:
    f = picograd.jit(lambda x: F.dropout(x * 0 + 1, 0.5), dynamic=True)
    found = []
    for function in (f, f.function):
        picograd.manual_seed(3)
        found.append([function(rows(count)).tolist() for count in (3, 5, 3, 4, 5)])
    assert found[0] == found[1]


def test_sizes_that_must_be_equal_are_compared() -> None:
    f = picograd.jit(lambda x, y: x + y, dynamic=True)
    assert f(rows(4), rows(4)).shape == f(rows(5), rows(5)).shape[:0] + (4, 6) and f.count == 1
    assert f(rows(5), rows(1)).shape == (5, 6)
    with pytest.raises(ValueError, match="broadcast"):
        f(rows(5), rows(4))


def test_errors_name_the_argument_the_dimension_and_the_range() -> None:
    batch = Dim("batch", 2, 8)
    f = picograd.jit(lambda x, y: x.sum() + y.sum(), dynamic={"x": {0: batch}, "y": {0: batch}})
    with pytest.raises(ValueError, match=r"axis 0 of argument x has size 9.*batch.*from 2 to 8"):
        f(rows(9), rows(9))
    with pytest.raises(ValueError, match=r"dimension batch is 3 and.*argument y, 4"):
        f(rows(3), rows(4))
    with pytest.raises(ValueError, match="axis 2 is marked"):
        picograd.jit(lambda x: x, dynamic={"x": {2: 8}})(rows(3))
    for wrong in (3, {"x": {"0": 4}}, {"x": {0: "many"}}, {"x": 0.5}):
        with pytest.raises(TypeError, match="dynamic="):
            picograd.jit(lambda x: x, dynamic=wrong)
    with pytest.raises(ValueError, match="marks 'z', and the function takes x, y"):
        picograd.jit(lambda x, y: x + y, dynamic={"z": {0: batch}})
    with pytest.raises(ValueError, match="marks 'z', and the function takes input"):
        picograd.jit(nn.Linear(2, 2), dynamic={"z": {0: batch}})
    for numbers in ((3, 2), (-1, 4), (1.0, 2)):
        with pytest.raises(ValueError, match="no range"):
            Dim("batch", *numbers)


def test_reasons_name_the_size_and_the_line(capfd: Any) -> None:
    f = picograd.jit(OTHERS["branch"], dynamic=True)
    with config.override(debug=1):
        f(rows(3))
        f(rows(5))
    text = "".join(capfd.readouterr())
    assert "argument x.shape[0]: " in text and "test_jit_sizes.py" in text


def test_the_decorator_takes_options() -> None:
    @picograd.jit(dynamic={"x": (0, 1)})
    def total(x: Tensor) -> Tensor:
        return x.sum()

    assert total(rows(3)).item() == pytest.approx(rows(3).sum().item(), rel=1e-5)
    assert total(rows(4)[:, :3]).item() == pytest.approx(rows(4)[:, :3].sum().item(), rel=1e-5)
    assert total.count == 1
