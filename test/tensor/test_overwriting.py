"""In-place writes over values that track gradients, and over memory that is read as well."""

from contextlib import nullcontext

import numpy as np
import pytest

import picograd

torch = pytest.importorskip("torch")


OVERWRITES = [
    "u.copy_(b)", "u.copy_(y)", "u.fill_(2.0)", "u.zero_()", "u[:] = b", "u[...] = 4.0",
    "u.view(-1).copy_(b.view(-1))", "u[0].copy_(b[0])", "u[:, 1] = y[0]", "u.normal_()",
]  # fmt: skip


@pytest.mark.parametrize("code", OVERWRITES)
@pytest.mark.parametrize("is_quiet", [False, True])
def test_gradients_of_what_was_overwritten_are_zeros(code, is_quiet):
    """Not None; and what they were where nobody notes the write."""
    found = []
    for lib in (torch, picograd):
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = lib.tensor([[5.0, 6.0], [7.0, 8.0]], requires_grad=True)
        u, b = x * 3, lib.tensor([[9.0, 1.0], [2.0, 3.0]])
        with lib.no_grad() if is_quiet else nullcontext():
            exec(code, {"u": u, "b": b, "y": y})
        assert u.requires_grad and not u.is_leaf
        (u * 2).sum().backward()
        found.append([None if each.grad is None else each.grad.tolist() for each in (x, y)])
    assert found[0] == found[1]


OVERLAPS = {
    "x[1:].add_(x[:-1])": True, "x[:-1].copy_(x[1:])": True, "x[1:] = x[:-1]": True,
    "x[1:] += x[:-1]": True, "x.view(2, 3).sub_(x[:3])": True, "x[:3].mul_(x[3:])": False,
    "x.mul_(x)": False, "x[:4].add_(x[:4])": False, "m = x[:4].view(2, 2); m.add_(m.t())": True,
    "x[::2].add_(x[1::2])": False, "x[1:] = x[:-1].clone()": False, "x.copy_(x.flip(0))": False,
    "x[2:4] = x[2:4]": False, "x[:2] = x[4:]": False, "m = x.view(2, 3); m[0] = m[1]": False,
}  # fmt: skip


@pytest.mark.parametrize("code", OVERLAPS)
def test_memory_that_is_read_and_written_overlaps(code):
    for lib in (torch, picograd):
        x = lib.arange(6.0)
        with pytest.raises(RuntimeError) if OVERLAPS[code] else nullcontext():
            exec(code, {"x": x})
        if lib is torch:
            wanted = x.tolist()
    assert x.tolist() == (list(range(6)) if OVERLAPS[code] else wanted)


def test_view_refuses_what_only_a_copy_has():
    for lib in (torch, picograd):
        x = lib.arange(24.0).view(2, 3, 4)
        for wrong, shape in (
            (x.transpose(0, 1), (3, 8)), (x.transpose(1, 2), (-1,)), (x[:, 1:], (-1,)),
            (x[:1].expand(2, 3, 4), (24,)),
        ):  # fmt: skip
            with pytest.raises(RuntimeError):
                wrong.view(shape)
            assert wrong.reshape(shape).numel() == wrong.numel()
        for right, shape in (
            (x.transpose(0, 1), (3, 2, 2, 2)), (x[1:], (12,)), (x[:, 1], (2, 2, 2)),
            (x.transpose(1, 2).contiguous(), (24,)), (x.permute(2, 0, 1), (4, 2, 3)),
        ):  # fmt: skip
            assert right.view(shape).numel() == right.numel()


@pytest.mark.parametrize("value", [3, None, [1.0, 2.0], np.ones(2)])
def test_data_takes_a_tensor_alone(value):
    for lib in (torch, picograd):
        x = lib.ones(2)
        with pytest.raises(TypeError):
            x.data = value
        assert x.tolist() == [1.0, 1.0]
