"""cudagrad's first program: a number and its gradients, by hand-checkable arithmetic.

python examples/autograd_basics.py [--device cuda] [--plot]
"""

from common import OUTPUT, read_options

from picograd import Tensor
from picograd.draw import draw_dot


def main(arguments=None):
    """Print the sum of ((a @ b) + c) * d and the gradients of a and b."""
    options = read_options(__doc__, arguments)
    place = dict(device=options.device, requires_grad=True)
    a = Tensor([[2.0, 3.0], [4.0, 5.0]], **place)
    b = Tensor([[6.0, 7.0], [8.0, 9.0]], **place)
    c = Tensor([[10.0, 10.0], [10.0, 10.0]], **place)
    d = Tensor([[11.0, 11.0], [11.0, 11.0]], **place)
    total = (((a @ b) + c) * d).sum()
    total.backward()
    print(f"{total.item():g}")
    print([int(value) for value in a.grad.flatten().tolist()])
    print([int(value) for value in b.grad.flatten().tolist()])
    if options.plot:
        print("wrote", draw_dot(total, OUTPUT / "autograd_basics.svg"))
    return total.item()


if __name__ == "__main__":
    main()
