"""The names PyTorch's users look for."""

import picograd


def test_names():
    assert picograd.amp.autocast is picograd.autocast
    assert picograd.amp.GradScaler is picograd.GradScaler
    with picograd.amp.autocast("cpu"):
        assert picograd.amp.is_autocast_enabled("cpu") and picograd.is_autocast_enabled("cpu")
    assert picograd.amp.get_autocast_dtype("cuda") is picograd.get_autocast_dtype("cuda")


def test_functions_of_the_users_own_run_as_they_are():
    assert picograd.amp.custom_fwd(device_type="cuda")(len)([1]) == 1
    assert picograd.amp.custom_bwd(len, device_type="cuda")([1]) == 1
