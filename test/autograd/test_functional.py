"""Derivatives of functions under the names of torch.autograd.functional."""

from picograd import Tensor, autograd


def test_second_derivatives_along() -> None:
    x, y, v = Tensor([1.0, 2.0]), Tensor([3.0]), Tensor([1.0, -1.0])
    value, product = autograd.functional.hvp(lambda a: (a**3).sum(), x, v)
    assert value.item() == 9 and product.tolist() == [6, -12]
    _, several = autograd.functional.vhp(lambda a, b: (a * b).sum(), (x, y), (v, Tensor([1.0])))
    assert [each.tolist() for each in several] == [[1.0, 1.0], [0.0]]
    assert autograd.functional.jacobian(lambda a: a * a, x).tolist() == [[2, 0], [0, 4]]
