"""torch.utils.tensorboard: tensorboardX's writer."""

import importlib
from importlib.util import find_spec

import pytest


@pytest.mark.skipif(bool(find_spec("tensorboardX")), reason="tensorboardX is installed")
def test_tensorboard_says_what_to_install() -> None:
    with pytest.raises(ImportError, match="pip install tensorboardX"):
        importlib.import_module("picograd.utils.tensorboard")


@pytest.mark.skipif(not find_spec("tensorboardX"), reason="tensorboardX is not installed")
def test_the_writer_is_that_of_tensorboardx() -> None:
    from tensorboardX import SummaryWriter

    ours = importlib.import_module("picograd.utils.tensorboard")
    assert issubclass(ours.SummaryWriter, SummaryWriter)
