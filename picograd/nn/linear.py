"""Linear: the fully connected layer."""

from typing import Any

from picograd.nn import init
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.tensor import Tensor


class Linear(Module):
    """This class computes x @ weight.T + bias: (..., in_features) -> (..., out_features)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        bound = init.fan_in_bound(in_features)
        self.weight = Parameter(init.uniform((out_features, in_features), bound, device, dtype))
        self.bias = Parameter(init.uniform((out_features,), bound, device, dtype)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Multiply by the weight and add the bias."""
        return x.linear(self.weight, self.bias)

    def extra_repr(self) -> str:
        """Describe the settings."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"
