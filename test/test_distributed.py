"""picograd.distributed: this process is the only one."""

import pytest

from picograd import distributed


def test_one_process() -> None:
    assert not distributed.is_available() and not distributed.is_initialized()
    assert distributed.get_rank() == 0 and distributed.get_world_size() == 1
    distributed.barrier(), distributed.destroy_process_group()
    with pytest.raises(RuntimeError, match="train in one process"):
        distributed.init_process_group("nccl")
