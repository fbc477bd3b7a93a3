"""GroupNorm, InstanceNorm, RMSNorm and LocalResponseNorm against PyTorch."""

import numpy as np
import pytest
from nn_support import array, compare_layer, compare_state, torch

from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

CASES = {
    "group_norm": ("GroupNorm", (2, 4), {"eps": 0.1}, (3, 4, 5)),
    "group_norm_plain": ("GroupNorm", (1, 4), {"affine": False}, (3, 4)),
    "instance_norm1d": ("InstanceNorm1d", (4,), {}, (3, 4, 5)),
    "instance_norm2d": ("InstanceNorm2d", (2,), {"affine": True}, (3, 2, 4, 5)),
    "instance_norm_track": ("InstanceNorm2d", (2,), {"track_running_stats": True}, (3, 2, 4, 5)),
    "rms_norm": ("RMSNorm", (6,), {}, (4, 6)),
    "rms_norm_two": ("RMSNorm", ((3, 4),), {"eps": 1e-3}, (2, 3, 4)),
    "local_response": ("LocalResponseNorm", (3,), {"alpha": 0.5}, (2, 5, 4)),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_equals_pytorch(case, device):
    compare_layer(CASES[case], device)


@pytest.mark.parametrize("name, args", [("GroupNorm", (2, 4)), ("RMSNorm", (5,))])
def test_state_is_pytorchs(name, args):
    compare_state(name, *args)


def test_tracked_statistics_are_used_in_evaluation(device):
    ours = nn.InstanceNorm1d(2, track_running_stats=True).to(device)
    reference = torch.nn.InstanceNorm1d(2, track_running_stats=True)
    for data in (array(3, 2, 5), array(2, 5)):  # a batch, then one sample without
        ours(Tensor(data, device=device))
        reference(torch.tensor(data))
    data = array(1, 2, 5)
    found = ours.eval()(Tensor(data, device=device)).numpy()
    wanted = reference.eval()(torch.tensor(data)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert ours.num_batches_tracked.item() == reference.num_batches_tracked.item()


def test_wrong_channels_are_named():
    with pytest.raises(ValueRangeError, match="GroupNorm: 4 channels do not divide into 3 groups"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ShapeError, match=r"GroupNorm: input of shape \(2, 3\) for 4 channels"):
        nn.GroupNorm(2, 4)(Tensor.ones(2, 3))
    with pytest.raises(ValueRangeError, match="LocalResponseNorm: size"):
        nn.LocalResponseNorm(0)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_cross_map_norm(size, device):
    data = array(2, 6, 3, 3)
    ours = nn.CrossMapLRN2d(size, 0.1, k=2)
    reference = torch.nn.CrossMapLRN2d(size, 0.1, k=2)
    found = ours(Tensor(data, device=device)).numpy()
    np.testing.assert_allclose(found, reference(torch.tensor(data)).numpy(), 1e-5, 1e-6)
    assert repr(ours) == repr(reference)
    with pytest.raises(ShapeError, match=r"CrossMapLRN2d: \(6, 3\) given"):
        ours(Tensor.ones(6, 3))


def test_rms_norm_starts_again() -> None:
    layer = nn.RMSNorm(2)
    nn.init.zeros_(layer.weight)
    layer.reset_parameters()
    assert layer.weight.tolist() == [1.0, 1.0]
