"""Sizes that are left open: the model computes what follows from them."""

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from export_cases import check, reals  # noqa: E402

import picograd  # noqa: E402
import picograd.onnx  # noqa: E402

SIZED = {
    "mean": lambda x: x.mean(0),
    "flat": lambda x: x.reshape(-1),
    "last": lambda x: x[-1] + x[x.shape[0] // 2],
    "halves": lambda x: picograd.cat([x[: x.shape[0] // 2], x[-1:]]),
    "positions": lambda x: x + picograd.arange(x.shape[0]).reshape(-1, 1) / x.shape[0],
    "square": lambda x: x @ x.T / x.shape[0] ** 0.5,
    "masked": lambda x: (
        (x @ x.T).masked_fill(picograd.ones(x.shape[0], x.shape[0]).triu(1) > 0, -1e9).softmax(1)
    ),
    "sorted": lambda x: x.sort(0)[0],
    "running": lambda x: x.cumsum(0) + x.cummax(0)[0] + (x.abs() + 0.1).cumprod(0),
    "picked": lambda x: x.gather(1, x.argmax(1, keepdim=True)),
    "written": lambda x: x.zeros_like().scatter(1, x.argmax(1, keepdim=True), 1.0),
    "windows": lambda x: x.unfold(0, 2, 1).sum(-1),
}


@pytest.mark.parametrize("name", SIZED)
def test_what_follows_from_an_open_size_is_computed(name: str) -> None:
    check(SIZED[name], (reals(4, 3),), (reals(9, 3),), {"x": {0: "n"}})
