"""Types that programs name: tensors by dtype, shapes, layouts."""

import pytest

import picograd

torch = pytest.importorskip("torch")


def test_types() -> None:
    x = picograd.LongTensor([1, 2])
    assert isinstance(x, picograd.LongTensor) and not isinstance(x, picograd.FloatTensor)
    assert picograd.FloatTensor(2, 3).shape == picograd.Size([2, 3]) and x.type() == (
        torch.LongTensor([1]).type()
    )
    assert picograd.FloatTensor(x.size() + (3,)).shape == (2, 3)  # sizes, and this is data:
    assert picograd.LongTensor((2, 3)).tolist() == [2, 3]
    assert picograd.ByteTensor(x[0].shape).shape == ()
    assert x.type(picograd.FloatTensor).dtype is x.type("torch.FloatTensor").dtype
    assert isinstance(x.shape, picograd.Size) and isinstance(x.dtype, picograd.dtype)
    assert picograd.Size([2, 3]).numel() == 6 and isinstance(x, picograd.autograd.Variable)
    assert x.to("cpu", picograd.float16, non_blocking=True).dtype is picograd.half
