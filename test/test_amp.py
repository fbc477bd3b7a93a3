"""The names PyTorch's users look for."""

import picograd


def test_names():
    assert picograd.amp.autocast is picograd.autocast
    assert picograd.amp.GradScaler is picograd.GradScaler
    with picograd.amp.autocast("cpu"):
        assert picograd.amp.is_autocast_enabled("cpu") and picograd.is_autocast_enabled("cpu")
    assert picograd.amp.get_autocast_dtype("cuda") is picograd.get_autocast_dtype("cuda")
