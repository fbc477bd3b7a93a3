"""What sits in the attributes of a module, as the dicts that PyTorch's programs look into."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any


class Members(MutableMapping[str, Any]):
    """This class shows the attributes of one kind; storing and deleting changes the module."""

    def __init__(
        self,
        module: Any,
        belongs: Callable[[str, Any], bool],
        store: Callable[[str, Any], None] | None = None,
    ) -> None:
        self.module, self.belongs, self.store = module, belongs, store

    def __getitem__(self, name: str) -> Any:
        value = vars(self.module)[name]
        if not self.belongs(name, value):
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        if self.store is not None and name not in self:
            self.store(name, value)
        else:
            setattr(self.module, name, value)

    def __delitem__(self, name: str) -> None:
        self[name]
        delattr(self.module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(
            [name for name, value in vars(self.module).items() if self.belongs(name, value)]
        )

    def items(self) -> Any:
        """List them as they are now; PyTorch's can be walked from the end."""
        return dict(super().items()).items()

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))
