import importlib

import numpy as np


def test_gradients_are_not_zero(device, tmp_path):
    a, b, d = importlib.import_module("picograd_ancestor").main(["--device", device])
    row_sums = np.broadcast_to(b.numpy().sum(1), (100, 50))
    np.testing.assert_allclose(a.grad.numpy(), row_sums, atol=1e-4)
    assert (d.grad.numpy() == 1).all()
    assert (tmp_path / "graphs" / "test.dot").is_file()
