"""Following a schedule of ours and PyTorch's side by side."""

import math
import warnings

import pytest

from picograd import Tensor, nn

torch = pytest.importorskip("torch")


def optimizers(rates=(0.3, 0.05), name="SGD", **options):
    """Make an optimizer of two groups, ours and PyTorch's."""
    mine = [{"params": [nn.Parameter(Tensor([1.0]))], "lr": rate} for rate in rates]
    theirs = [{"params": [torch.ones(1, requires_grad=True)], "lr": rate} for rate in rates]
    return getattr(nn.optim, name)(mine, **options), getattr(torch.optim, name)(theirs, **options)


def options_of(optimizer):
    names = ("lr", "momentum", "betas")
    return [[group[name] for name in names if name in group] for group in optimizer.param_groups]


def flat(values):
    return [x for v in values for x in (flat(v) if isinstance(v, (list, tuple)) else [v])]


def follow(make, steps=60, argument=None, **optimizer):
    """Step both schedules, compare rates and momentum of all groups; returns both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's advice on step(epoch)
        return follow_both(make, steps, argument, optimizer)


def follow_both(make, steps, argument, optimizer):
    mine, reference = optimizers(**optimizer)
    reference.step()
    ours, theirs = make(nn.lr_scheduler, mine), make(torch.optim.lr_scheduler, reference)
    for step in range(steps):
        found, wanted = flat(options_of(mine)), flat(options_of(reference))
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-15), f"step {step}"
        assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-9, abs=1e-15)
        for schedule in (ours, theirs):
            schedule.step(*([] if argument is None else [argument(step)]))
    rates = [group.numbers_beside(group.parameters[0])["lr"].item() for group in mine.param_groups]
    assert rates == pytest.approx(ours.get_last_lr(), rel=1e-6)
    assert not any(math.isnan(rate) for rate in rates)
    return ours, theirs
