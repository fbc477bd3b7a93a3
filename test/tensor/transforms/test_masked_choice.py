"""Reads and writes where a mask holds that is computed in a jitted function, against PyTorch."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import TraceError

torch = pytest.importorskip("torch")

DATA = np.arange(12, dtype=np.float32).reshape(3, 4)
STEPS = {  # x is a tensor of 3 x 4, v one of 4
    "number": "x[x > c] = 2.0",
    "one": "x[x > c] = v[:1]",
    "rows": "x[x[:, 0] > c] = v",
    "a column of rows": "x[x[:, 0] > c, 1] = 7",
    "a range of rows": "x[x[:, 0] > c, 1:3] = v[:2]",
    "columns": "x[:, x[0] + 4 > c] = v[:3, None]",
    "columns of a row": "x[1, x[1] > c] = -1",
    "from the end": "x[..., x[1] > c] = 3",
    "after a range": "x[1:, x[1] > c] += 1",
    "a new axis": "x[None, x > c] = 4",
    "a view": "x[1:].t()[x[1:].t() > c] = 5",
    "add": "x[x > c] += 1",
    "scale rows": "x[x[:, 0] > c] *= v + 1",
    "of another": "y = x * 10; m = x > c; x[m] = y[m]",
    "equal masks": "x[x > c] = -x[x > c] * 2 + 1",
    "functions": "m = x > c; x[m] = (x[m] * 2).sqrt().clamp(max=4) / x[m]",
    "two steps": "m = x > c; y = x[m]; y += 1; x[m] = y; x[~m] = 0",
    "power": "m = x > c; x[m] **= 2",
    "masked_fill": "x.masked_fill_(x > c, 1.5)",
    "masked_fill rows": "x.masked_fill_(x[0] + 3 > c, 1.5)",
    "masked_scatter": "x.masked_scatter_(x > c, x.clone() * 2)",
    "masked_scatter rows": "x.masked_scatter_(x[1] > c, v.repeat(3))",
    "index_put": "x.index_put_((x > c,), v[0])",
    "index_put add": "x.index_put_((x > c,), v[0], accumulate=True)",
    "sum": "x = x[x > c].sum()",
    "mean": "x = x[x > c].mean() * (x[x > c] * 2).sum()",
    "loss": "x = ((x[x > c] - x[x > c] ** 2) ** 2).mean()",
}


def run(text: str, lib: Any, jit: Any, tracks: bool) -> list[Any]:
    """Run a step for several masks; gives the values, and gradients."""

    def step(x: Any, v: Any, c: Any) -> Any:
        names = {"x": x.clone() if tracks else x, "v": v, "c": c, "lib": lib}
        exec(text, names)
        return names["x"] * 1

    found, f = [], jit(step)
    for c in (4.0, 0.5, 7.0):
        x = lib.tensor(DATA + 0.25, requires_grad=tracks)
        v = lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=tracks)
        out = f(x, v, c)
        found.append(out.detach().numpy())
        if tracks:
            (out * out).sum().backward()
            found += [each.grad.numpy() for each in (x, v) if each.grad is not None]
    return found


@pytest.mark.parametrize("name", STEPS)
def test_masks_in_jitted_functions_equal_pytorch(name: str) -> None:
    for tracks in (False, True):
        wanted = run(STEPS[name], torch, lambda f: f, tracks)
        jitted: list[Any] = []

        def jit(f: Any, jitted: list[Any] = jitted) -> Any:
            jitted.append(picograd.jit(f))
            return jitted[-1]

        found = run(STEPS[name], picograd, jit, tracks)
        for a, b in zip(found, wanted):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        assert jitted[0].count == 1


def test_a_row_for_every_place_is_checked() -> None:
    @picograd.jit
    def f(x: Any, rows: Any) -> Any:
        x[x > 0] = rows
        return x

    assert f(Tensor([1.0, -1.0, 2.0]), Tensor([5.0, 6.0])).tolist() == [5, -1, 6]
    with pytest.raises(ValueError, match="a row for every place"):
        f(Tensor([1.0, 1.0, 2.0]), Tensor([5.0, 6.0])).tolist()
    scatter = picograd.jit(lambda x, rows: x.masked_scatter(x > 0, rows))
    assert scatter(Tensor([1.0, -1.0, 2.0]), Tensor([5.0, 6.0])).tolist() == [5, -1, 6]
    with pytest.raises(ValueError, match="more places"):
        scatter(Tensor([1.0, 1.0, 2.0]), Tensor([5.0, 6.0])).tolist()


@pytest.mark.parametrize(
    "text",
    ["x[x > 0]", "x[x > 0].shape", "(x[x > 0] * 2).max()", "lib.sort(x[x > 0])", "len(x[x > 0])",
     "x[x > 0] + x[x > 1]", "x[x > 0][0]", "nn.functional.relu(x[x > 0]).sum(0)", "list(x[x > 0])",
     "x[x > 0, lib.tensor([0, 1])]", "lib.cat([x[x > 0], x])", "x[x > 0] + lib.tensor([1., 2.])"],
)  # fmt: skip
def test_what_asks_for_the_elements_is_named(text: str) -> None:
    x = Tensor(DATA if "lib.tensor([0" not in text else DATA[0])
    with pytest.raises(TraceError, match="mask"):
        picograd.jit(lambda x: eval(text, {"x": x, "lib": picograd, "nn": nn}))(x)
    assert (x * 1).sum().item() >= 0


def test_masks_of_samples() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y[y > 2] += 10
        return y.masked_fill(y < 1, -1.0)

    x = Tensor(DATA)
    wanted = [f(row).tolist() for row in x]
    assert picograd.vmap(f)(x).tolist() == wanted
    _, ys = picograd.scan(lambda c, row: (c, f(row)), Tensor(0.0), x)
    assert ys.tolist() == wanted
