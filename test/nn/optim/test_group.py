"""Parameter groups: a mapping of options, some of which are numbers on the device."""

import pytest

from picograd import Tensor, nn
from picograd.errors import DTypeError, ValueRangeError
from picograd.nn.optim.group import Expanded


def group(**options):
    return nn.optim.AdamW([nn.Parameter(Tensor([1.0]))], **options).param_groups[0]


def numbers(found):
    tensors = found.numbers_beside(found["params"][0])
    return {name: tensor.item() for name, tensor in tensors.items()}


def test_a_group_is_a_mapping():
    found = group(lr=0.5)
    assert found["lr"] == 0.5 and "betas" in found and found.get("nesterov") is None
    assert next(iter(found)) == "params" and len(found) == len(dict(found))


def test_numbers_follow_the_options():
    found = group(lr=0.5, weight_decay=0.5)
    assert numbers(found)["keep"] == 0.75
    found.update(lr=0.25, betas=(0.5, 0.75))
    after = numbers(found)
    assert (after["lr"], after["keep"], after["beta1"], after["rest2"]) == (0.25, 0.875, 0.5, 0.25)


def test_numbers_are_expanded_once_a_shape():
    expanded = Expanded({"lr": Tensor(0.5)}, (2, 3))
    assert expanded["lr"].shape == (2, 3) and expanded["lr"] is expanded["lr"]


def test_a_rate_may_be_a_tensor():
    assert group(lr=Tensor(0.5))["lr"] == 0.5


def test_wrong_options_change_nothing():
    found = group(lr=0.5)
    with pytest.raises(ValueRangeError, match="lr=-1.0 is negative"):
        found.set_options({"lr": -1.0, "eps": 1.0})
    with pytest.raises(DTypeError, match="lr must be a number, not bool"):
        found["lr"] = True
    with pytest.raises(ValueRangeError, match="no option 'learning_rate'"):
        found["learning_rate"] = 0.1
    with pytest.raises(ValueRangeError, match="'lr' cannot be deleted"):
        del found["lr"]
    assert found["lr"] == 0.5 and found["eps"] == 1e-8
