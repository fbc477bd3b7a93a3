"""What tests of exported models share: inputs, weights, and the comparison with ONNX Runtime.

What is wanted is computed by the interpreter of Graph IR: no kernel is compiled.
"""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import picograd  # noqa: E402
import picograd.onnx  # noqa: E402
from picograd import Tensor, nn  # noqa: E402
from picograd.graph.interpret import interpret  # noqa: E402

RANDOM = np.random.default_rng(0)
Arrays = tuple[Any, ...]


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    values = value.values() if isinstance(value, dict) else value
    return [each for one in values if one is not None for each in tensors_in(one)]


def reals(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def made(spec: str, batch: int) -> Any:
    """Make an input: "b,3" are reals, "4:b,3" ints below 4, "+b,3" from 0 to 1, "?b" signs."""
    limit, _, sizes = spec.rpartition(":")
    kind = sizes[0] if sizes[0] in "+?" else ""
    shape = [batch if each == "b" else int(each) for each in sizes.lstrip("+?").split(",")]
    if limit:
        return RANDOM.integers(0, int(limit), shape)
    if kind == "?":
        return RANDOM.choice([-1, 1], shape)
    return RANDOM.uniform(0.1, 0.9, shape).astype(np.float32) if kind else reals(*shape)


def filled(model: Any) -> Any:
    """Give a module weights that no kernel draws."""
    for each in model.parameters():
        each.data = Tensor(reals(*each.shape) / 2)
    return model


def run(model: Any, arrays: Arrays) -> list[Any]:
    """Run a model by ONNX Runtime."""
    session = runtime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    found: list[Any] = session.run(None, dict(zip(names, arrays)))
    return found


def computed(model: Any, arrays: Arrays) -> tuple[list[Any], list[Any]]:
    """Compute the outputs of a function, by the interpreter; gives the tensors too."""
    with picograd.no_grad():
        results = tensors_in(model(*map(Tensor, arrays)))
    return interpret([each._node for each in results]), results


def check(model: Any, arrays: Arrays, other: Arrays, dynamic: Any, **options: Any) -> Any:
    """Export for arrays, run on others, and compare."""
    exported = picograd.onnx.export(model, tuple(map(Tensor, arrays)), dynamic=dynamic, **options)
    if isinstance(model, nn.Module):
        model.eval()
    (wanted, results), found = computed(model, other), run(exported, other)
    assert len(found) == len(wanted)
    for one, other_one, result in zip(found, wanted, results):
        assert one.shape == result.shape and str(one.dtype) == result.dtype.name
        np.testing.assert_allclose(one, other_one, 2e-4, 2e-5)
    return exported
