"""autoray on tensors: it finds functions by the names that it has for PyTorch's. Imported after it.

autoray.do("transpose", x)       # x.permute(...), as of a tensor of PyTorch
"""

import importlib
from types import CodeType, FunctionType
from typing import Any

autoray: Any = importlib.import_module("autoray.autoray")
TABLES = ("_CREATION_INJECT", "_CUSTOM_WRAPPERS", "_FUNCS", "_FUNC_ALIASES", "_SUBMODULE_ALIASES")
THEIRS, OURS = "torch", "picograd"
SPACE = {**vars(autoray), "get_torch": lambda: importlib.import_module(OURS)}


def take_over(table: dict[Any, Any]) -> None:
    """Add a row of ours for each of PyTorch's, which are there by (library, name)."""
    for (library, name), value in list(table.items()):
        if library == THEIRS:
            table.setdefault((OURS, name), in_our_name(value))


def in_our_name(value: Any) -> Any:
    """Give a name, or a function, in which our library stands for PyTorch."""
    if isinstance(value, FunctionType):
        made = FunctionType(
            in_our_name(value.__code__), SPACE, value.__name__, value.__defaults__,
            value.__closure__,
        )  # fmt: skip
        made.__kwdefaults__ = value.__kwdefaults__
        return made
    if isinstance(value, CodeType):
        return value.replace(co_consts=tuple(in_our_name(each) for each in value.co_consts))
    return OURS if isinstance(value, str) and value == THEIRS else value


for table in TABLES:
    take_over(getattr(autoray, table, {}))
