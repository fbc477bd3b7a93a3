"""picograd.cuda: torch.cuda's names, amp among them, where there is a GPU and where none is."""

import pytest

import picograd
from picograd import nn


def test_what_is_asked_before_anything_is_computed() -> None:
    assert picograd.cuda.device_count() >= 0 and picograd.cuda.memory_allocated() >= 0
    where = picograd.device("cuda" if picograd.cuda.is_available() else "cpu")
    assert where.type in ("cpu", "cuda")


@pytest.mark.skipif(picograd.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu() -> None:
    with pytest.raises(RuntimeError, match="CPU"):
        nn.Linear(1, 1).cuda()
    assert not picograd.cuda.amp.GradScaler().is_enabled()


def test_ranges_of_other_tools_are_counted() -> None:
    nvtx = picograd.cuda.nvtx
    with nvtx.range("step {}", 1):
        assert [nvtx.range_push("a"), nvtx.range_pop(), nvtx.mark("b")] == [1, 1, None]
    assert nvtx.range_push("a") == 0 and nvtx.range_pop() == 0
