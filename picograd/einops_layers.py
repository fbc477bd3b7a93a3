"""einops' layers as modules: `from einops.layers.picograd import Rearrange, Reduce, EinMix`."""

import importlib
from collections.abc import Sequence
from typing import Any

from picograd.nn.init import uniform_parameter
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.public import einsum
from picograd.tensor.tensor import Tensor

layers: Any = importlib.import_module("einops.layers")
mixing: Any = importlib.import_module("einops.layers._einmix")

__all__ = ["EinMix", "Rearrange", "Reduce"]


class Rearrange(layers.RearrangeMixin, Module):  # type: ignore[misc]
    """This class is `einops.rearrange` as a layer: Rearrange("b c h w -> b (c h w)")."""

    def forward(self, input: Tensor) -> Any:
        """Rearrange axes."""
        return self._apply_recipe(input)


class Reduce(layers.ReduceMixin, Module):  # type: ignore[misc]
    """This class is `einops.reduce` as a layer: Reduce("b c h w -> b c", "mean")."""

    def forward(self, input: Tensor) -> Any:
        """Reduce axes."""
        return self._apply_recipe(input)


class EinMix(mixing._EinmixMixin, Module):  # type: ignore[misc]
    """This class is einops' linear layer over named axes."""

    bias: Parameter | None
    pre_rearrange: Rearrange | None
    post_rearrange: Rearrange | None

    def _create_parameters(
        self,
        weight_shape: Sequence[int],
        weight_bound: float,
        bias_shape: Sequence[int] | None,
        bias_bound: float,
    ) -> None:
        self.weight: Parameter = uniform_parameter(tuple(weight_shape), weight_bound)
        has_bias = bias_shape is not None
        self.bias = uniform_parameter(tuple(bias_shape or ()), bias_bound) if has_bias else None

    def _create_rearrange_layers(
        self, before: str | None, sizes_before: Any, after: str | None, sizes_after: Any
    ) -> None:
        self.pre_rearrange = Rearrange(before, **sizes_before) if before is not None else None
        self.post_rearrange = Rearrange(after, **sizes_after) if after is not None else None

    def forward(self, input: Tensor) -> Any:
        """Multiply by the weight along the named axes."""
        x = input if self.pre_rearrange is None else self.pre_rearrange(input)
        result = einsum(self.einsum_pattern, x, self.weight)
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)
