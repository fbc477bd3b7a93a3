"""picograd.accelerator: torch.accelerator's names for a GPU, where there is one."""

import picograd


def test_it_is_the_gpu() -> None:
    here = picograd.cuda.is_available()
    assert picograd.accelerator.is_available() == here
    assert picograd.accelerator.device_count() == picograd.cuda.device_count() >= here
    named = picograd.accelerator.current_accelerator()
    assert (named is not None and named.type == "cuda") == here
    picograd.accelerator.synchronize()


def test_modules_of_devices_are_found_by_their_kind() -> None:
    kind = picograd._utils._get_available_device_type()
    assert kind is None or kind == "cuda"
    assert picograd._utils._get_device_module("cuda") is picograd.cuda
    assert picograd._utils._get_device_module("cpu") is picograd.cpu
