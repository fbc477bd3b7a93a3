"""The names of picograd.func are those of torch.func."""

import pytest

import picograd
from picograd import func


def test_names() -> None:
    torch = pytest.importorskip("torch")
    assert all(hasattr(torch.func, name) for name in func.__all__)
    assert all(hasattr(func, name) for name in func.__all__)
    assert picograd.vmap is func.vmap and picograd.func is func


def test_models_as_functions() -> None:
    """functorch's older form: parameters in a tuple, of several models stacked."""
    model = picograd.nn.Linear(3, 2)
    call, parameters = func.make_functional(model)
    x = picograd.randn(4, 3)
    assert call(parameters, x).tolist() == model(x).tolist()
    assert call([each * 0 for each in parameters], x).tolist() == [[0.0, 0.0]] * 4
    found = func.grad(lambda given: call(given, x).sum())(parameters)
    assert found[1].tolist() == [4.0, 4.0] and parameters[0] is not model.weight
    models = [picograd.nn.BatchNorm1d(3).eval() for _ in range(2)]
    with pytest.raises(RuntimeError, match="has buffers"):
        func.make_functional(models[0])
    whole, stacked, buffers = func.combine_state_for_ensemble(models)
    made = func.vmap(whole, (0, 0, None))(stacked, buffers, x)
    assert made.shape == (2, 4, 3) and made[1].allclose(models[1](x))
    assert not any(each.requires_grad for each in func.make_functional(model, True)[1])


def test_batch_norms_that_forget_are_vectorised() -> None:
    model = picograd.nn.Sequential(picograd.nn.Linear(2, 2), picograd.nn.BatchNorm1d(2))
    assert picograd.func.replace_all_batch_norm_modules_(model) is model
    x = picograd.arange(12.0).reshape(3, 2, 2)
    found = picograd.func.vmap(model)(x)
    assert picograd.allclose(found[1], model(x[1]), atol=1e-5)
    assert [name for name, _ in model.named_buffers()] == []
