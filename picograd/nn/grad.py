"""Gradients of convolutions under torch.nn.grad's names."""

from typing import Any

from picograd.nn import functional
from picograd.tensor.core.recording import grad
from picograd.tensor.tensor import Tensor

__all__ = [
    "conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input",
    "conv3d_weight",
]  # fmt: skip


def _of_input(rank: int) -> Any:
    """Make the gradient of a convolution's input."""

    def gradient(
        input_size: Any, weight: Tensor, grad_output: Tensor,
        stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        input = weight.new_zeros(tuple(input_size)).requires_grad_()
        convolve = getattr(functional, f"conv{rank}d")
        result = convolve(input, weight.detach(), None, stride, padding, dilation, groups)
        return grad(result, [input], grad_output)[0]

    gradient.__name__ = gradient.__qualname__ = f"conv{rank}d_input"
    gradient.__doc__ = f"Compute the gradient of `conv{rank}d` in its input of this size."
    return gradient


def _of_weight(rank: int) -> Any:
    """Make the gradient of a convolution's weight."""

    def gradient(
        input: Tensor, weight_size: Any, grad_output: Tensor,
        stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        weight = input.new_zeros(tuple(weight_size)).requires_grad_()
        convolve = getattr(functional, f"conv{rank}d")
        result = convolve(input.detach(), weight, None, stride, padding, dilation, groups)
        return grad(result, [weight], grad_output)[0]

    gradient.__name__ = gradient.__qualname__ = f"conv{rank}d_weight"
    gradient.__doc__ = f"Compute the gradient of `conv{rank}d` in its weight of this size."
    return gradient


conv1d_input, conv2d_input, conv3d_input = (_of_input(rank) for rank in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_of_weight(rank) for rank in (1, 2, 3))
