"""The first program of the PICOGRAD that this one descends from, as it was written.

python examples/picograd_ancestor.py [--device cuda]
"""

import numpy as np
from common import read_options

from picograd import Tensor
from picograd.draw_utils import draw_dot


def main(arguments=None):
    """Multiply, add, differentiate, draw."""
    device = read_options(__doc__, arguments).device or "cpu"
    a = Tensor(np.random.randn(100, 50), device=device)
    b = Tensor(np.random.randn(50, 100)).to(device)
    c = a.dot(b)
    d = Tensor(np.random.randn(100, 100), device=device)
    e = c + d
    e.backward()  # on a non-scalar: starts from ones
    print("gradient of a:", a.grad.shape, "row sums of b.T")
    print("drew", draw_dot(e, path="graphs/test"))
    return a, b, d


if __name__ == "__main__":
    main()
