"""What `picograd.compile` makes of a module: one that holds it, as PyTorch's does."""

from typing import Any

from picograd.nn.module import Module


class OptimizedModule(Module):
    """This class holds a module that `compile` was given, calls it, and shows its attributes.

    Kernels are fused anyway. The class is there for what programs know it by: `_orig_mod`,
    and names of parameters that begin so.

    >>> from picograd import nn
    >>> list(OptimizedModule(nn.Linear(2, 2)).state_dict())
    ['_orig_mod.weight', '_orig_mod.bias']
    """

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._orig_mod = mod

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Tell whether the module trains."""
        return self._orig_mod.training

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Call the module."""
        return self._orig_mod(*inputs, **options)

    def __getattr__(self, name: str) -> Any:
        held = self.__dict__
        if name in held or "_orig_mod" not in held:  # that one: a copy or pickle begins without
            return object.__getattribute__(self, name)
        return getattr(held["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        is_own = name in self.__dict__ or "_orig_mod" not in self.__dict__
        (super() if is_own else self._orig_mod).__setattr__(name, value)

    def __len__(self) -> int:
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True
