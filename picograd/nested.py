"""PyTorch's `torch.nested`: batches whose members differ in one size, kept without padding.

A `NestedTensor` of shape (B, j, ...) holds the rows of all members one after the other: values of
shape (sum of j, ...), and the length of each member. Elementwise functions, linear layers and what
works on the other axes are called on the values; attention pads, masks and packs again. Functions
that `picograd/nested_rules.py` does not list are refused: they would mix members.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NoReturn

from picograd.errors import DTypeError, ShapeError
from picograd.nested_rules import ALONG, ELEMENTWISE, ON_ROWS, OPERATORS, REDUCING
from picograd.nn import functional
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.recording import rewrite
from picograd.tensor.core.type_info import iinfo
from picograd.tensor.public import as_tensor, cat
from picograd.tensor.tensor import Tensor
from picograd.typed import jagged

__all__ = ["NestedTensor", "as_nested_tensor", "nested_tensor", "nested_tensor_from_jagged"]
__all__ += ["to_padded_tensor"]


class NestedTensor:
    """This class is a batch of tensors that differ in the size of one axis, the ragged one.

    >>> import picograd
    >>> batch = picograd.nested.nested_tensor([picograd.ones(2, 3), picograd.ones(1, 3)])
    >>> [tuple(each.shape) for each in (batch * 2).unbind()]
    [(2, 3), (1, 3)]
    """

    is_nested = True

    def __init__(self, rows: Tensor, lengths: Sequence[int], ragged: int = 1) -> None:
        self._rows = rows  # the ragged axis first, then the others in order
        self._lengths = tuple(lengths)
        self._ragged = ragged

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes; in the place of the ragged one stand the lengths of all members."""
        sizes: list[Any] = [len(self._lengths), *self._rows.shape[1:]]
        sizes.insert(self._ragged, self._lengths)
        return tuple(sizes)

    @property
    def ndim(self) -> int:
        """The number of axes, with that of the members."""
        return len(self._rows.shape) + 1

    @property
    def layout(self) -> Any:
        """How it lies in memory: as the layout that PyTorch calls jagged, whichever was asked."""
        return jagged

    @property
    def grad(self) -> "NestedTensor | None":
        """The gradient, nested alike; None before there is one."""
        found = self._rows.grad
        return None if found is None else self._with(found)

    def size(self, dim: int | None = None) -> Any:
        """Give the sizes, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Give the number of axes."""
        return self.ndim

    def numel(self) -> int:
        """Count the elements of all members."""
        return self._rows.numel()

    def values(self) -> Tensor:
        """Give the rows of all members one after the other, their axes in the members' order."""
        return self._rows.movedim(0, self._ragged - 1)

    def offsets(self) -> Tensor:
        """Give where each member begins among the rows, and where the last one ends: (B + 1,)."""
        return self._table(accumulate(self._lengths, initial=0))

    def lengths(self) -> None:
        """Give what PyTorch has for rows with gaps between members: there are none."""

    def requires_grad_(self, requires_grad: bool = True) -> "NestedTensor":
        """Ask for gradients of the values."""
        self._rows.requires_grad_(requires_grad)
        return self

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Give the members."""
        if dim % self.ndim:
            refuse("unbind", f"axis {dim} is not that of the members", "use dim=0")
        parts = self._rows.split(list(self._lengths))
        return tuple(part.movedim(0, self._ragged - 1) for part in parts)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """Give a dense tensor, filled up with `padding` behind the shorter members."""
        longest = max(self._lengths, default=0)
        if output_size is not None:
            wanted = int(output_size[self._ragged])
            if wanted < longest:
                refuse("to_padded_tensor", f"{longest} rows do not fit {wanted}", "ask for more")
            longest = wanted
        is_row = self._mask(longest)
        shape = (*is_row.shape, *self._rows.shape[1:])
        places = self._places(longest)
        like: dict[str, Any] = dict(dtype=self._rows.dtype, device=self._rows.device)
        sizes = (is_row.numel(), *shape[2:])
        empty = Tensor.full(sizes, padding, **like)
        return empty.index_copy(0, places, self._rows).reshape(*shape).movedim(1, self._ragged)

    def permute(self, *dims: Any) -> "NestedTensor":
        """Put the axes of the members into another order."""
        given = dims if len(dims) > 1 else dims[0]
        order = [dim % self.ndim for dim in given]
        if order[0]:
            refuse("permute", "the axis of the members must stay the first", "leave it there")
        others = [self._place(dim) for dim in order[1:] if dim != self._ragged]
        moved = self._rows.permute(0, *others)
        return NestedTensor(moved, self._lengths, order.index(self._ragged))

    def transpose(self, dim0: int, dim1: int) -> "NestedTensor":
        """Exchange two axes of the members."""
        order = list(range(self.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return self.permute(order)

    def unsqueeze(self, dim: int) -> "NestedTensor":
        """Insert an axis of size 1 into the members."""
        place = dim % (self.ndim + 1)
        if not place:
            refuse("unsqueeze", "the axis of the members must stay the first", "insert it behind")
        is_before = place <= self._ragged
        rows = self._rows.unsqueeze(place if is_before else place - 1)
        return NestedTensor(rows, self._lengths, self._ragged + is_before)

    def squeeze(self, dim: int) -> "NestedTensor":
        """Leave out an axis of the members, if its size is 1."""
        place = dim % self.ndim
        return self.select(place, 0) if self.shape[place] == 1 else self

    def select(self, dim: int, index: int) -> Any:
        """Take one place along an axis that is not ragged; along the first, a member."""
        before = [slice(None)] * (dim % self.ndim)
        place = (*before, index)
        return self[place]

    def flatten(self, start_dim: int, end_dim: int = -1) -> "NestedTensor":
        """Join axes behind the ragged one."""
        first, last = start_dim % self.ndim, end_dim % self.ndim
        if first <= self._ragged:
            refuse("flatten", f"axis {start_dim} is not behind the ragged one", "transpose it")
        return self._with(self._rows.flatten(self._place(first), self._place(last)))

    def unflatten(self, dim: int, sizes: Sequence[int]) -> "NestedTensor":
        """Divide an axis behind the ragged one."""
        if dim % self.ndim <= self._ragged:
            refuse("unflatten", f"axis {dim} is not behind the ragged one", "transpose it")
        return self._with(self._rows.unflatten(self._place(dim % self.ndim), sizes))

    def view(self, *sizes: Any) -> "NestedTensor":
        """Change the sizes behind the ragged one, for which -1 or its own size stands."""
        wanted = list(sizes if len(sizes) > 1 else sizes[0])
        if self._ragged != 1 or wanted[0] != len(self._lengths):
            refuse("view", f"{self.shape} cannot become {tuple(wanted)}", "transpose it first")
        if wanted[1] not in (-1, self._lengths):
            refuse("view", f"{wanted[1]} is not the ragged size", "pass -1 there")
        return self._with(self._rows.reshape(self._rows.shape[0], *wanted[2:]))

    reshape = view

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call a function on the values, where it keeps the members apart."""
        name, options = func.__name__.strip("_"), kwargs or {}
        special = SPECIAL.get(name)
        if special is not None:
            return special(*args, **options)
        own = next(each for each in (*args, *options.values()) if isinstance(each, cls))
        if name in ALONG:
            return own._along(func, name, list(args[1:]), dict(options))
        if name not in ELEMENTWISE and name not in ON_ROWS:
            refuse(name, "it is not defined for nested tensors", "call .unbind(), or pad them")
        if name in ON_ROWS:
            return own._on_rows(func, args, options)
        given = [own._beside(name, each) for each in args]
        named = {key: own._beside(name, each) for key, each in options.items()}
        found = func(*given, **named)
        return args[0] if found is own._rows and args[0] is own else own._with(found)

    def __getattr__(self, name: str) -> Any:
        if name in ("device", "dtype", "is_leaf", "requires_grad"):
            return getattr(self._rows, name)
        plain = name.removesuffix("_")
        is_known = plain in ELEMENTWISE or name in ON_ROWS or name in ALONG
        if name.startswith("_") or not is_known:
            raise AttributeError(f"a NestedTensor has no attribute {name!r}")
        function = getattr(Tensor, name, None) or getattr(functional, name)

        def call(*args: Any, **options: Any) -> Any:
            return self.__torch_function__(function, (), (self, *args), options)

        return call

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, tuple):
            return self.unbind()[index]
        whole = slice(None)
        items = list(index)
        if ... not in items:
            items.append(...)
        at = items.index(...)
        missing = self.ndim - len(items) + 1
        items[at : at + 1] = [whole] * missing
        if isinstance(items[0], int):
            return self.unbind()[items[0]][tuple(items[1:])]
        if [items[0], items.pop(self._ragged)] != [whole, whole]:
            refuse("index", "members and ragged axes are read as a whole", "call .unbind()")
        before = sum(isinstance(each, int) for each in items[: self._ragged])
        others = (whole, *items[1:])
        rows = self._rows[others]
        return NestedTensor(rows, self._lengths, self._ragged - before)

    def __repr__(self) -> str:
        return f"NestedTensor(size={self.shape}, values={self._rows!r})"

    def _rewrite(self, op: str, result: "NestedTensor") -> "NestedTensor":
        """Write a result over the values."""
        rewrite(self._rows, op, result._rows)
        return self

    def _with(self, rows: Tensor) -> "NestedTensor":
        """Nest other rows alike."""
        return NestedTensor(rows, self._lengths, self._ragged)

    def _place(self, dim: int) -> int:
        """Find an axis of the members, neither the first nor the ragged one, among the rows'."""
        return dim if dim < self._ragged else dim - 1

    def _table(self, numbers: Any) -> Tensor:
        """Make a tensor of int64 where the values are."""
        return Tensor(list(numbers), dtype="int64", device=self._rows.device)

    def _places(self, longest: int) -> Tensor:
        """Find each row in the padded tensor, whose first two axes are one."""
        starts = range(0, longest * len(self._lengths), longest or 1)
        places: list[int] = []
        for start, size in zip(starts, self._lengths):
            places += range(start, start + size)
        return self._table(places)

    def _mask(self, longest: int) -> Tensor:
        """Tell which places of the padded tensor are rows: (B, longest)."""
        sizes = self._table(self._lengths).unsqueeze(1)
        return Tensor.arange(longest, device=self._rows.device) < sizes

    def _packed(self, padded: Tensor) -> "NestedTensor":
        """Nest a padded tensor as this one is."""
        rows = padded.movedim(self._ragged, 1)
        places = self._places(rows.shape[1])
        return self._with(rows.flatten(0, 1).index_select(0, places))

    def _on_rows(self, func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a function of the last axes, whose first operand alone is nested."""
        if self._ragged == self.ndim - 1 > 1:
            refuse(func.__name__, "the last axis is the ragged one", "transpose it")
        rest = (*args[1:], *options.values())
        if args[0] is not self or any(isinstance(each, NestedTensor) for each in rest):
            problem = "an operand that is not the first one is nested"
            refuse(func.__name__, problem, "call .unbind(), or pad them")
        return self._with(func(self._rows, *args[1:], **options))

    def _beside(self, name: str, each: Any) -> Any:
        """Read an operand of an elementwise function: nested alike, a number, or one to expand."""
        if isinstance(each, NestedTensor):
            if each._lengths != self._lengths or each._ragged != self._ragged:
                problem = f"{each.shape} and {self.shape} are not nested alike"
                refuse(name, problem, "pass members of the same sizes")
            return each._rows
        if not isinstance(each, Tensor) or not each.shape:
            return each
        sizes = (1,) * (self.ndim - each.ndim) + tuple(each.shape)
        if len(sizes) > self.ndim or sizes[self._ragged] != 1:
            refuse(
                name, f"{tuple(each.shape)} does not fit {self.shape}", "use 1 for the ragged size"
            )
        spread = each.reshape(*sizes).squeeze(self._ragged)
        if sizes[0] == 1:
            return spread
        members: list[int] = []
        for number, size in enumerate(self._lengths):
            members += [number] * size
        return spread.index_select(0, self._table(members))

    def _along(self, func: Any, name: str, args: list[Any], options: dict[str, Any]) -> Any:
        """Call a function of one axis: of the rows, of all elements, or of the ragged one."""
        position = ALONG[name]
        if "dim" in options:
            args[position:position] = [options.pop("dim")]
        if len(args) <= position:
            if name not in REDUCING:
                refuse(name, "it asks for an axis", "pass dim")
            return func(self._rows, *args, **options)
        given = args[position]
        if given is None:
            return func(self._rows, *args, **options)
        dims = [dim % self.ndim for dim in (given if isinstance(given, Sequence) else [given])]
        if 0 in dims:
            refuse(name, "axis 0 is that of the members", "call .unbind()")
        if dims == [self._ragged]:
            return self._along_ragged(func, name, args[1:], options)
        if self._ragged in dims:
            refuse(name, f"axis {self._ragged} is the ragged one", "reduce the others first")
        places = [self._place(dim) for dim in dims]
        args[position] = places if isinstance(given, Sequence) else places[0]
        found = func(self._rows, *args, **options)
        if isinstance(found, tuple):
            return tuple(self._with(each) for each in found)
        is_gone = found.ndim < self._rows.ndim
        before = sum(dim < self._ragged for dim in dims) if is_gone else 0
        return NestedTensor(found, self._lengths, self._ragged - before)

    def _along_ragged(self, func: Any, name: str, args: Any, options: dict[str, Any]) -> Any:
        """Call a function along the ragged axis of a padded tensor."""
        if name not in FILLING:
            refuse(name, f"axis {self._ragged} is the ragged one", "call .unbind(), or pad them")
        filling, dtype = FILLING[name], self._rows.dtype
        if filling in (INFINITY, -INFINITY) and not dtype.is_float:
            limits = iinfo(dtype)
            filling = limits.max if filling > 0 else limits.min
        padded = self.to_padded_tensor(filling)
        if name in ("softmax", "log_softmax", "cumsum"):
            return self._packed(func(padded, self._ragged, *args, **options))
        if name != "mean":
            return func(padded, self._ragged, *args, **options)
        sizes = self._table(self._lengths).reshape(-1, *([1] * (self.ndim - 1)))
        total = padded.sum(self._ragged, keepdim=True) / sizes
        is_kept = options.get("keepdim") or any(args)
        return total if is_kept else total.squeeze(self._ragged)


INFINITY = float("inf")
# what padding changes nothing along the ragged axis
FILLING = {
    "all": 1.0,
    "amax": -INFINITY,
    "amin": INFINITY,
    "any": 0.0,
    "cumsum": 0.0,
    "log_softmax": -INFINITY,
    "mean": 0.0,
    "prod": 1.0,
    "softmax": -INFINITY,
    "sum": 0.0,
}


def attention(
    query: NestedTensor,
    key: NestedTensor,
    value: NestedTensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **options: Any,
) -> NestedTensor:
    """Attend within each member: the ragged axis is the last but one of all three."""
    op = "scaled_dot_product_attention"
    given = query, key, value
    if not all(is_by_rows(each) for each in given):
        refuse(op, "query, key and value must be nested along axis -2", "transpose them")
    if attn_mask is not None or key._lengths != value._lengths or len(query) != len(key):
        refuse(op, "members attend to their own keys alone", "leave out attn_mask")
    q, k, v = (each.to_padded_tensor(0.0) for each in given)
    mask = key._mask(k.shape[-2]).unsqueeze(1)
    if is_causal:
        places = [Tensor.arange(each.shape[-2], device=q.device) for each in (q, k)]
        mask = mask & (places[0].unsqueeze(1) >= places[1])
    mask = mask | ~mask.any(-1, keepdim=True)  # a row without keys is padding
    while mask.ndim < q.ndim:
        mask = mask.unsqueeze(1)
    found = functional.scaled_dot_product_attention(q, k, v, mask, dropout_p, **options)
    return query._packed(found)


def is_by_rows(given: Any) -> bool:
    """Tell whether the ragged axis of an operand of attention is the last but one."""
    return isinstance(given, NestedTensor) and given._ragged == given.ndim - 2


def join(tensors: Sequence[NestedTensor], dim: int = 0, **options: Any) -> NestedTensor:
    """Join nested tensors along an axis that is not ragged."""
    first = tensors[0]
    place = dim % first.ndim
    if place in (0, first._ragged):
        refuse("cat", f"axis {dim} is that of the members, or ragged", "call .unbind() first")
    rows = [first._beside("cat", each) for each in tensors]
    return first._with(cat(rows, first._place(place)))


def refuse(op: str, problem: str, fix: str) -> NoReturn:
    """Raise ShapeError about nested tensors."""
    raise ShapeError(op, f"nested tensors: {problem}", fix)


def operator(name: str) -> Callable[..., Any]:
    """Make the method of an operator."""
    return lambda own, *others: getattr(own, name)(*others)


for symbol, method in OPERATORS.items():
    setattr(NestedTensor, f"__{symbol}__", operator(method))
NestedTensor.__hash__ = object.__hash__  # type: ignore[method-assign]
NestedTensor.__rsub__ = lambda own, other: (-own).add(other)  # type: ignore[attr-defined]
NestedTensor.__rtruediv__ = (  # type: ignore[attr-defined]
    lambda own, other: own.reciprocal().mul(other)
)
SPECIAL: dict[str, Callable[..., Any]] = {
    "cat": join,
    "concat": join,
    "flatten": NestedTensor.flatten,
    "permute": NestedTensor.permute,
    "reshape": NestedTensor.view,
    "scaled_dot_product_attention": attention,
    "select": NestedTensor.select,
    "squeeze": NestedTensor.squeeze,
    "transpose": NestedTensor.transpose,
    "unbind": NestedTensor.unbind,
    "unflatten": NestedTensor.unflatten,
    "unsqueeze": NestedTensor.unsqueeze,
}


def as_nested_tensor(
    ts: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None, layout: Any = None
) -> NestedTensor:
    """Nest tensors, whose gradients pass; those that differ in another size than the first raise.

    A dense tensor has members of one length. Layouts are one: values without padding.

    >>> import picograd
    >>> picograd.nested.as_nested_tensor([picograd.ones(2), picograd.ones(3)]).shape
    (2, (2, 3))
    """
    if isinstance(ts, NestedTensor):
        return ts.to(device or ts.device, dtype or ts.dtype)  # type: ignore[no-any-return]
    members = [as_tensor(each) for each in ts]
    if not members or any(each.ndim == 0 for each in members):
        refuse("nested_tensor", "there are no members, or some without axes", "pass 1 or more")
    if len({(tuple(each.shape[1:]), each.dtype) for each in members}) > 1:
        shapes = [tuple(each.shape) for each in members]
        refuse("nested_tensor", f"{shapes} differ in more than the first size", "pad the others")
    rows = cat(members).to(device or members[0].device, dtype or members[0].dtype)
    return NestedTensor(rows, [each.shape[0] for each in members])


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: DTypeLike | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """Nest copies of tensors: `as_nested_tensor` without the gradients of its operands.

    >>> import picograd
    >>> batch = picograd.nested.nested_tensor([[1.0, 2.0], [3.0]])
    >>> picograd.nested.to_padded_tensor(batch, 0.0).tolist()
    [[1.0, 2.0], [3.0, 0.0]]
    """
    nested = as_nested_tensor(tensor_list, dtype, device)
    rows = nested._rows.detach()
    rows = rows.clone() if isinstance(tensor_list, NestedTensor) else rows
    return nested._with(rows).requires_grad_(requires_grad)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """Nest the rows of all members, which begin at `offsets` or have `lengths`.

    >>> import picograd
    >>> rows = picograd.arange(3.0).reshape(3, 1)
    >>> picograd.nested.nested_tensor_from_jagged(rows, picograd.tensor([0, 1, 3])).shape
    (2, (1, 2), 1)
    """
    if (offsets is None) == (lengths is None):
        problem = "either offsets or lengths must be given"
        raise DTypeError("nested_tensor_from_jagged", problem, "pass one of them")
    given: Any = lengths if offsets is None else offsets.diff()
    sizes: list[int] = given.tolist()
    ragged = 1 if jagged_dim is None else jagged_dim
    rows = values.movedim(ragged - 1, 0)
    if min(sizes, default=0) < 0 or sum(sizes) != rows.shape[0]:
        problem = f"members of {sizes} rows do not make up {rows.shape[0]}"
        refuse("nested_tensor_from_jagged", problem, "pass the sizes of all members")
    return NestedTensor(rows, sizes, ragged)


def to_padded_tensor(input: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """Give a dense tensor, filled up with `padding` behind the shorter members."""
    return input.to_padded_tensor(padding, output_size)
