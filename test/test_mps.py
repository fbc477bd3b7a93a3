"""picograd.mps: there are no such GPUs, and the names of random numbers work."""

from picograd import mps


def test_there_is_none() -> None:
    assert not mps.is_available() and mps.device_count() == mps.current_allocated_memory() == 0
    mps.synchronize(), mps.empty_cache()
    mps.manual_seed(3)
    assert mps.initial_seed() == 3
