"""Linear and Bilinear: fully connected layers."""

from picograd.errors import ShapeError
from picograd.nn import functional, init
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.tensor import Tensor


class Linear(Module):
    """This class computes x @ weight.T + bias: (..., in_features) -> (..., out_features).

    >>> from picograd import Tensor, nn
    >>> nn.Linear(3, 2)(Tensor.ones(5, 3)).shape
    (5, 2)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        init.check_sizes("Linear", in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        bound = init.fan_in_bound(in_features)
        place = device, dtype
        self.weight = init.uniform_parameter((out_features, in_features), bound, *place)
        self.bias = init.uniform_parameter((out_features,), bound, *place) if bias else None
        init.begin(self, Linear)

    def reset_parameters(self) -> None:
        """Draw the weight and the bias anew."""
        init.draw_again(self, self.in_features)

    def forward(self, input: Tensor) -> Tensor:
        """Multiply by the weight and add the bias."""
        need_tensor("Linear", input)
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Describe the settings."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class Bilinear(Module):
    """This class computes a W b + bias: (..., I), (..., J) -> (..., O), weight (O, I, J).

    >>> from picograd import Tensor, nn
    >>> nn.Bilinear(2, 3, 4)(Tensor.ones(5, 2), Tensor.ones(5, 3)).shape
    (5, 4)
    """

    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        sizes = dict(in1_features=in1_features, in2_features=in2_features)
        init.check_sizes("Bilinear", 1, **sizes, out_features=out_features)
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        bound = init.fan_in_bound(in1_features)
        shape = (out_features, in1_features, in2_features)
        self.weight: Parameter = init.uniform_parameter(shape, bound, device, dtype)
        self.bias = init.uniform_parameter(shape[:1], bound, device, dtype) if bias else None
        init.begin(self, Bilinear)

    def reset_parameters(self) -> None:
        """Draw the weight and the bias anew."""
        init.draw_again(self, self.in1_features)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Multiply from both sides and add the bias. Raises ShapeError for other sizes."""
        need_tensor("Bilinear", input1, input2)
        wanted = (self.in1_features, self.in2_features)
        if (input1.shape[-1], input2.shape[-1]) != wanted or input1.shape[:-1] != input2.shape[:-1]:
            problem = f"inputs {tuple(input1.shape)} and {tuple(input2.shape)} do not fit {wanted}"
            raise ShapeError("Bilinear", problem, "give (..., I) and (..., J)")
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Describe the settings."""
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{sizes}, out_features={self.out_features}, bias={self.bias is not None}"
