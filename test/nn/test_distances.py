"""CosineSimilarity and PairwiseDistance against PyTorch."""

import pytest
from nn_support import array, compare, torch

from picograd import nn


@pytest.mark.parametrize("options", [{}, {"dim": 0, "eps": 1e-3}])
def test_cosine_similarity(options, device):
    modules = (module(**options) for module in (nn.CosineSimilarity, torch.nn.CosineSimilarity))
    compare(*modules, [array(4, 6), array(4, 6)], device)


@pytest.mark.parametrize("options", [{}, {"p": 1.0, "eps": 0.5, "keepdim": True}])
def test_pairwise_distance(options, device):
    modules = (module(**options) for module in (nn.PairwiseDistance, torch.nn.PairwiseDistance))
    compare(*modules, [array(4, 6), array(4, 6)], device)
