"""Walks through what is inside a module: names, modules and tensors, in the order of definition.

A walk does not enter a module again from what is inside it, so that a part may know its parent.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from picograd.device_name import device as device_named
from picograd.dtype import DType
from picograd.errors import MemberError, StateError
from picograd.nn import hooks
from picograd.nn.parameter import Parameter, Uninitialized, as_tensor, overwrite
from picograd.tensor.making.creation import is_dtype
from picograd.tensor.tensor import Tensor


class Inner:
    """This class is what walks enter: the base of modules."""

    _version: int = 1  # of the state dict, which subclasses of PyTorch's modules count
    _added: Mapping[str, int] = {}  # names that a state lacks if it is older than a version
    _inside: Set[str] = frozenset()  # names of the modules that were assigned, in the usual way
    _placed: Set[str] = frozenset()  # names of tensors that were put among the parameters
    _persistence: Mapping[str, bool] = {}  # attribute name -> is it part of the state dict?

    @property
    def _non_persistent_buffers_set(self) -> set[str]:
        """Name the buffers that states leave out, as programs that copy modules ask."""
        return {name for name, is_kept in self._persistence.items() if not is_kept}

    def _named_members(
        self: Any, get_members_fn: Callable[[Any], Any], prefix: str = "",
        recurse: bool = True, remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:  # fmt: skip
        """Yield (path, value) of what a function lists of each module, but for None."""
        modules = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]
        found = (
            (f"{path}.{name}" if path else name, value)
            for path, module in modules
            for name, value in get_members_fn(module)
            if value is not None
        )
        return once(found) if remove_duplicate else found


# why modules have no `save`, as PyTorch's scripts have, and what to do
NOT_SAVED = "a compiled program is no file here. Fix: picograd.save(model.state_dict(), path)."


def hidden(module: Any, name: str) -> Any:
    """Find an attribute, also one behind a property that finds nothing. Raises AttributeError."""
    held = vars(module)
    if name == "save" and name not in held and not hasattr(type(module), name):
        text = f"{type(module).__name__!r} object has no attribute {name!r}"
        raise AttributeError(f"{text}: {NOT_SAVED}")
    return held[name] if name in held else object.__getattribute__(module, name)


class LoadResult(NamedTuple):
    """Names that `load_state_dict(strict=False)` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def check_names(result: LoadResult) -> None:
    """Raise StateError where names are missing, or nobody has a place for them."""
    kinds = (("missing", result.missing_keys), ("unexpected", result.unexpected_keys))
    problems = [f"{kind} {', '.join(names)}" for kind, names in kinds if names]
    if problems:
        fix = "load a state made by the same model, or pass strict=False"
        if outer := wrapper_of(*result):
            fix = f"take the name of a wrapper off its names: name.removeprefix({outer!r})"
        raise StateError("load_state_dict", "; ".join(problems), fix)


def wrapper_of(missing: list[str], unexpected: list[str]) -> str:
    """Find what stands before each unexpected name, of a model that was saved inside another."""
    ends = missing[:1] if unexpected else []
    starts = [x.removesuffix(end) for end in ends for x in unexpected if x.endswith("." + end)]
    return next((start for start in starts if all(x.startswith(start) for x in unexpected)), "")


def add_younger(
    module: Inner, state: dict[str, Any], prefix: str, version: Mapping[str, Any]
) -> None:
    """Add to the state of a module what those of older versions lack: its own tensors."""
    for name, since in module._added.items():
        own = vars(module).get(name)  # None: without statistics
        if version.get("version", 0) < since and own is not None:
            state.setdefault(prefix + name, own)


def empty_state() -> dict[str, Any]:
    """Make a state dict, which notes the version of each module beside its tensors."""
    state: dict[str, Any] = OrderedDict()
    vars(state)["_metadata"] = OrderedDict()
    return state


EXTRA_STATE = "_extra_state"  # the name, in a state dict, of what `get_extra_state` gives
HELD = (Inner, Tensor)  # what attributes are searched for
Above = tuple[Any, ...]  # what a walk is inside of, the outermost first
SHOWN: ContextVar[tuple[Inner, ...]] = ContextVar("SHOWN", default=())


@contextmanager
def shown(module: Inner) -> Iterator[tuple[Inner, ...]]:
    """Give the modules whose repr is being written, this one too."""
    above = (*SHOWN.get(), module)
    token = SHOWN.set(above)
    try:
        yield above
    finally:
        SHOWN.reset(token)


def named_lines(module: Inner, above: Sequence[Inner] = ()) -> list[tuple[str, Any]]:
    """List what the repr of a module shows, a shared module under each of its names.

    Those in `above` are not listed: a part that knows its parent does not contain it.
    """
    outer = {id(each) for each in above}
    found = []
    for name, item in members_of(module):
        if isinstance(item, Inner) and id(item) not in outer:
            found.append((name, item))
    return found


def once(pairs: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Pass (name, object) on, every object once."""
    seen: set[int] = set()
    for name, value in pairs:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


def members_of(module: Inner) -> Iterator[tuple[str, Any]]:
    """Yield the modules and tensors in attributes; what is in a plain list or dict is hidden."""
    inside = module._inside
    for name, value in list(vars(module).items()):
        if isinstance(value, HELD) and (name in inside or not isinstance(value, Inner)):
            yield name, value


def walk(module: Inner, prefix: str, above: Above = ()) -> Iterator[tuple[str, Any]]:
    """Yield (path, module) for a module and all inside it, a shared one under each path."""
    waiting: list[tuple[str, Any, Above]] = [(prefix, module, above)]
    while waiting:  # no recursion: modules may be nested deeper than Python's calls
        path, inner, outer = waiting.pop()
        yield path, inner
        outer = (*outer, inner)
        start = f"{path}." if path else ""
        lines = named_lines(inner, outer)
        waiting += [(start + name, child, outer) for name, child in reversed(lines)]


def named_tensors(
    root: Inner, prefix: str, recurse: bool = True, above: Above = ()
) -> Iterator[tuple[str, Tensor, bool, bool]]:
    """Yield (path, tensor, is it state?, a parameter?): of each module parameters, then buffers.

    A shared tensor appears under each path.
    """
    members = list(members_of(root))
    for name, value in members:
        is_parameter = isinstance(value, Parameter)
        if is_parameter or name in root._placed:
            path = prefix + name
            yield path, value, True, True
    for name, value in members if root._persistence else ():
        persistent = root._persistence.get(name)
        is_buffer = isinstance(value, Tensor) and not isinstance(value, Parameter)
        if persistent is not None and is_buffer:
            yield prefix + name, value, persistent, False
    above = (*above, root)
    for name, child in named_lines(root, above) if recurse else ():
        yield from named_tensors(child, f"{prefix}{name}.", True, above)


def renew_buffers(root: Any, change: Callable[[Tensor], Tensor]) -> None:
    """Put what a function makes of buffers in their place, where it is something else.

    What else holds such a tensor, as an attribute that keeps it in float32, holds the old one.
    """
    made: dict[int, tuple[Tensor, Tensor]] = {}
    for module in root.modules():
        for name in module._persistence:
            old = vars(module).get(name)
            if not isinstance(old, Tensor) or isinstance(old, (Parameter, Uninitialized)):
                continue
            if id(old) not in made:
                made[id(old)] = old, change(old)
            new = made[id(old)][1]
            if new is not old:
                setattr(module, name, new)


def after_children(module: Inner, above: Above = ()) -> Iterator[Any]:
    """Yield what is inside a module before it, and the module."""
    above = (*above, module)
    for _, child in once(iter(named_lines(module, above))):
        yield from after_children(child, above)
    yield module


def load_own(module: Inner, state: Mapping[str, Any], prefix: str) -> None:
    """Overwrite the tensors of one module that a state has; note that the module was asked."""
    vars(module)["_is_usual"] = True
    own = {name: x for name, x, is_state, _ in named_tensors(module, prefix, False) if is_state}
    values = {name: as_tensor(state[name], name) for name in own if name in state}
    check_shapes(own, values)
    overwrite([(own[name], value) for name, value in values.items()])


def check_shapes(own: Mapping[str, Any], values: dict[str, Tensor]) -> None:
    """Raise StateError where a value has another shape; what has no sizes yet takes them on."""
    for name, value in list(values.items()):
        is_waiting = isinstance(own[name], Uninitialized)
        if isinstance(value, Uninitialized) and not is_waiting:
            problem = f"{name} has the shape of an uninitialized parameter"
            raise StateError("load_state_dict", problem, "run a forward pass of the model saved")
        if is_waiting and isinstance(value, Uninitialized):
            del values[name]
        elif is_waiting:
            own[name].materialize(tuple(value.shape))
    wrong = [
        f"{name} has shape {tuple(value.shape)}, the model wants {tuple(own[name].shape)}"
        for name, value in values.items()
        if tuple(value.shape) != tuple(own[name].shape)
    ]
    if wrong:
        fix = "build the model with the sizes it was saved with"
        raise StateError("load_state_dict", "; ".join(wrong), fix)


def overrides(module: Inner, name: str) -> bool:
    """Tell whether the class of a module has a method of its own, rather than Module's."""
    kind = type(module)
    base = next(each for each in kind.__mro__ if Inner in each.__bases__)
    return getattr(kind, name) is not getattr(base, name)


def asks_parts(module: Inner, name: str) -> bool:
    """Tell whether a method is to be called part by part: a class inside has its own."""
    kinds = {type(each): each for each in after_children(module) if each is not module}
    return any(overrides(each, name) for each in kinds.values())


def found(module: Any, op: str, target: str, named: Mapping[str, Any]) -> Any:
    """Look a path up; MemberError if nothing has it."""
    if target not in named:
        problem = f"{type(module).__name__} has no {target!r}"
        raise MemberError(op, problem, "use a path such as 'layers.0.weight'")
    return named[target]


def save(
    module: Any, prefix: str, state: dict[str, Any], keep_vars: bool, above: Above = ()
) -> dict[str, Any]:
    """Write the state of a module and of those inside it, calling their hooks; give it back."""
    version = {"version": module._version}
    if hasattr(state, "_metadata"):
        state._metadata[prefix[:-1]] = version
    if module._hooks is not None:
        hooks.tell(module._hooks.state_before, module, prefix, keep_vars)
    module._save_to_state_dict(state, prefix, keep_vars)
    above = (*above, module)
    for name, child in named_lines(module, above):
        if overrides(child, "state_dict"):
            child.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        else:
            save(child, f"{prefix}{name}.", state, keep_vars, above)
    if module._hooks is not None:
        hooks.show(module._hooks.state_after, "state_dict", module, state, prefix, version)
    return state


def prepared(
    root: Any, state: Mapping[str, Any], strict: bool
) -> tuple[dict[str, Any], LoadResult]:
    """Copy a state, and let hooks change the copy and note what is missing or unexpected."""
    given, result, errors = dict(state), LoadResult([], []), list[str]()
    versions = getattr(state, "_metadata", {})
    for path, module in walk(root, ""):
        prefix, version = f"{path}." if path else "", versions.get(path, {})
        add_younger(module, given, prefix, version)
        is_own = overrides(module, "_load_from_state_dict")
        if not (module._hooks or is_own):
            continue
        part = {name: given.pop(name) for name in list(given) if name.startswith(prefix)}
        shown = part, prefix, version, strict, *result, errors
        if module._hooks:
            hooks.tell(module._hooks.load_before, module, *shown)
        if is_own:
            module._load_from_state_dict(*shown)
            if not vars(module).pop("_is_usual", False):  # it says itself what is missing
                held = {name for name, _ in named_lines(module, ())}
                quiet = [name for name in part if first_of(name, prefix) not in held]
                part = {name: part[name] for name in part.keys() - set(quiet)}
                own = named_tensors(module, prefix, False)
                given |= {name: x for name, x, is_state, _ in own if is_state}
        given |= part
    if errors:
        raise StateError("load_state_dict", "; ".join(errors), "see the hooks that say so")
    return given, result


def first_of(path: str, prefix: str) -> str:
    """Give the first name of a path below a prefix."""
    return path[len(prefix) :].split(".", 1)[0]


def with_extra_state(root: Any) -> dict[str, Any]:
    """Map the names of extra state to the modules that read it."""
    return {
        f"{path}.{EXTRA_STATE}" if path else EXTRA_STATE: module
        for path, module in walk(root, "")
        if overrides(module, "set_extra_state")
    }


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> tuple[Any, Any, bool, Any]:
    """Read the arguments of `to`, which have any order: (device, dtype, whether to wait, layout).

    PyTorch's programs call it by this name where they override `to`.
    """
    for arg in args:
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, DType) or is_dtype(arg):
            dtype = arg
        elif isinstance(arg, bool):
            non_blocking = arg
        else:
            device = arg if arg is not None else device
    device = device if device is None else device_named(device)
    return device, dtype, non_blocking, memory_format
