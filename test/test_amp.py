"""The names PyTorch's users look for."""

import pytest

import picograd


def test_names():
    assert picograd.amp.autocast is picograd.autocast
    assert picograd.amp.GradScaler is picograd.GradScaler
    with picograd.amp.autocast("cpu"):
        assert picograd.amp.is_autocast_enabled("cpu") and picograd.is_autocast_enabled("cpu")
    assert picograd.amp.get_autocast_dtype("cuda") is picograd.get_autocast_dtype("cuda")


@pytest.mark.parametrize("cast", [None, picograd.float32])
def test_functions_of_the_users_own_compute_in_their_region(cast):
    seen = []

    class Product(picograd.autograd.Function):
        @staticmethod
        @picograd.amp.custom_fwd(device_type="cpu", cast_inputs=cast)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @picograd.amp.custom_bwd(device_type="cpu")
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            seen.append((x @ x).dtype)
            return gradient.float() @ x.float()

    x = picograd.ones(2, 2, requires_grad=True)
    wide = picograd.float32 if cast else picograd.bfloat16
    with picograd.autocast("cpu"):
        y = Product.apply(x.bfloat16() if cast else x)
    y.sum().backward()
    assert y.dtype == wide and seen == [wide] and x.grad.tolist() == [[2.0, 2.0]] * 2


def test_names_of_regions_on_cpus() -> None:
    assert picograd.get_autocast_cpu_dtype() is picograd.bfloat16
    assert not picograd.is_autocast_cpu_enabled()
    with picograd.autocast("cpu", dtype=picograd.float16):
        assert picograd.is_autocast_cpu_enabled()
        assert picograd.get_autocast_cpu_dtype() is picograd.float16
