"""NAdam, RAdam, Adamax and SparseAdam against PyTorch's."""

import numpy as np
import pytest
from optim_support import KERNEL_SHAPES, check_steps, kernels_of_a_step, start, torch

import picograd
from picograd import nn

CASES = {
    "nadam": ("NAdam", {"lr": 0.01}),
    "nadam_decoupled": ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "nadam_decay": ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True}),
    "radam": ("RAdam", {"lr": 0.01}),
    "radam_short": ("RAdam", {"lr": 0.01, "betas": (0.9, 0.5), "weight_decay": 0.1}),
    "radam_decoupled": ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "adamax": ("Adamax", {"lr": 0.01}),
    "adamax_decay": ("Adamax", {"weight_decay": 0.1, "betas": (0.8, 0.9), "maximize": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    check_steps(*CASES[case], device)


@pytest.mark.parametrize("case", ["nadam", "radam", "adamax"])
def test_bfloat16(case, device):
    check_steps(*CASES[case], device, "bfloat16", steps=6)


@pytest.mark.parametrize("name, numbers", [("NAdam", 1), ("RAdam", 1), ("Adamax", 1)])
def test_one_kernel_and_those_of_numbers(name, numbers, device):
    """All parameters share a kernel; the rest compute single numbers: step count, corrections."""
    ours, _ = start(device, KERNEL_SHAPES)
    assert kernels_of_a_step(getattr(nn.optim, name)(ours), ours) == 1 + numbers


def test_rows_that_were_not_read_stay() -> None:
    """Word vectors of a language model: rows move by their own steps, as of sparse gradients."""
    tables = [torch.nn.Embedding(6, 3, sparse=True), nn.Embedding(6, 3, sparse=True)]
    start = np.random.default_rng(0).standard_normal((6, 3)).astype("float32")
    for library, table in ((torch, tables[0]), (picograd, tables[1])):
        with library.no_grad():
            table.weight.copy_(library.from_numpy(start))
        optimizer = library.optim.SparseAdam(table.parameters(), lr=0.1)
        for rows in ([0, 1, 1], [1, 4], [0, 2]):
            optimizer.zero_grad()
            (table(library.tensor(rows)) ** 2).sum().backward()
            optimizer.step()
    ours, theirs = (each.weight.detach().numpy() for each in reversed(tables))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert (ours[[3, 5]] == start[[3, 5]]).all() and (ours[:3] != start[:3]).all()
