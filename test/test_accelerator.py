"""picograd.accelerator: torch.accelerator's names for a GPU, where there is one."""

import picograd


def test_it_is_the_gpu() -> None:
    here = picograd.cuda.is_available()
    assert picograd.accelerator.is_available() == here
    assert picograd.accelerator.device_count() == picograd.cuda.device_count() >= here
    named = picograd.accelerator.current_accelerator()
    assert (named is not None and named.type == "cuda") == here
    picograd.accelerator.synchronize()
