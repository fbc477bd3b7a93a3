"""Module: the base of layers and models; finds its parameters by looking at its attributes.

Parameters, buffers and modules are attributes; the name of one is its path, as in PyTorch:
`blocks.0.weight`. Plain lists and dicts hide what is in them, as PyTorch's do: `ModuleList` and its
like do not. No `super().__init__()` is needed. A module that `object.__setattr__` puts into an
attribute is not inside, as in PyTorch, and walks do not enter a module again from what is inside
it: a part may know its parent.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from inspect import isroutine
from typing import Any, ParamSpec, Protocol, TypeVar

from picograd.dtype import bfloat16, float16, float32, float64, to_dtype
from picograd.engine.tracing import RUNNING, note_change, note_object
from picograd.errors import DTypeError, StateError
from picograd.helpers import on_demand
from picograd.nn import hooks, members
from picograd.nn.hooks import Hooks
from picograd.nn.members import check_name
from picograd.nn.parameter import Buffer, Parameter, as_tensor, overwrite, rebind_all, replace
from picograd.nn.walks import (
    EXTRA_STATE,
    Inner,
    LoadResult,
    _parse_to,
    after_children,
    asks_parts,
    check_names,
    check_shapes,
    empty_state,
    found,
    hidden,
    load_own,
    members_of,
    named_lines,
    named_tensors,
    once,
    overrides,
    prepared,
    renew_buffers,
    save,
    shown,
    walk,
    with_extra_state,
)
from picograd.tensor.core.alone import change_gradient
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.gradient_hooks import HookHandle
from picograd.tensor.core.guard import read_constructor
from picograd.tensor.tensor import Tensor

module_html = on_demand("picograd.nn.module_html", "module_html")

Self = TypeVar("Self", bound="Module")
P = ParamSpec("P")  # arguments of a `forward`
R = TypeVar("R", covariant=True)  # its result


class Forward(Protocol[P, R]):
    """This class is what computes: a module is called with the arguments of its `forward`."""

    def forward(self, *inputs: P.args, **options: P.kwargs) -> R:
        """Compute the output."""


class Module(Inner):
    """This class is the base of every layer: write `forward`, assign parameters to attributes.

    >>> from picograd import Tensor, nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         self.weight = nn.Parameter(Tensor([2.0]))
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> Scale()(Tensor([3.0])).tolist()
    [6.0]
    """

    training: bool = True
    T_destination = dict[str, Any]  # PyTorch's name for the kind of a state
    call_super_init: bool = False  # whether classes that follow in the order of bases are set up
    _shown: str = ""  # what `extra_repr` gives: "dim={self.dim}"
    _hooks: Hooks | None = None  # the class's own, once there are any, are those of all modules
    _forward_hooks, _forward_pre_hooks = hooks.Shown("after"), hooks.Shown("before")
    _backward_hooks, _backward_pre_hooks = hooks.Shown("gradient"), hooks.Shown("gradient_before")

    # members by name, as dicts that change what they show
    _parameters, _buffers = members.Shown(members.Parameters), members.Shown(members.Buffers)
    _modules = members.Shown(members.Modules)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        read_constructor(cls)

    def __init__(self, *given: Any, **options: Any) -> None:
        """Show the members; what follows among the bases is for the class, as in PyTorch."""
        members.show_members(self)
        if self.call_super_init or given or options:
            super().__init__(*given, **options)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the output; every module defines its own."""
        fix = "define it, as def forward(self, x), or call the modules in it"
        raise NotImplementedError(f"{type(self).__name__} does not define forward(). Fix: {fix}.")

    def __call__(self: Forward[P, R], *inputs: P.args, **options: P.kwargs) -> R:
        """Call `forward`, and the hooks around it."""
        module: Any = self
        if RUNNING.traces:
            note_object(module)
        if module._hooks is None:
            return self.forward(*inputs, **options)
        return hooks.call(module, module._hooks, inputs, options)

    _call_impl = _wrapped_call_impl = __call__

    # attributes

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to hide a parameter, buffer or module behind something else."""
        if "_modules" not in self.__dict__:  # not all classes call the constructor of this one
            members.show_members(self)
        if any(hooks.REGISTRATION.values()):
            value = hooks.at_assignment(self, name, value)
        if isinstance(value, Module) and isroutine(getattr(type(self), name, None)):
            self.__dict__.pop(name, None)
            name = members.Covered(name)
        if value is not None:
            self._check_kind(name, value)
        if isinstance(value, Module):
            self._note_inside(name)
        elif isinstance(value, Buffer) and name not in self._persistence:
            vars(self)["_persistence"] = {**self._persistence, name: value.persistent}
        old = self.__dict__.get(name, self)
        if old is not value:
            note_change()
            kind = Parameter if isinstance(value, Parameter) else Module
            if isinstance(value, kind) and not (isinstance(old, kind) or name in self._placed):
                self.__dict__.pop(name, None)  # members are in the order in which they became such
            if value is None and isinstance(old, Parameter):
                vars(self)["_placed"] = self._placed | {name}
        try:
            object.__setattr__(self, name, value)
        except AttributeError:  # a property that only reads: it may show what it hides
            if not isinstance(value, (Parameter, Module)):
                raise
            self.__dict__[name] = value

    def _note_inside(self, name: str) -> None:
        self.__dict__.setdefault("_inside", set()).add(name)

    def _holds(self, name: Any, kind: type, places: Set[str]) -> bool:
        """Tell whether an attribute is of a kind of members, or None in the place of one.

        A None that was assigned, such as `bias` of a layer without, is in that of a parameter.
        """
        held = self.__dict__.get(name, "")
        if held is None and kind is Parameter:
            return name not in self._inside and name not in self._persistence
        return isinstance(held, kind) if held is not None else name in places

    def _check_kind(self, name: str, value: Any) -> None:
        old = self.__dict__.get(name)
        wanted: type = object
        if isinstance(old, (Parameter, Module)):
            wanted = Parameter if isinstance(old, Parameter) else Module
        elif name in self._persistence:
            wanted = Tensor
        elif old is None and name in self._placed:
            wanted = Parameter
        takes = {Tensor: (Tensor, Module), Module: (Module, Parameter)}.get(wanted, wanted)
        if not isinstance(value, takes):
            problem = f"{name} is a {wanted.__name__} and cannot become a {type(value).__name__}"
            fix = f"assign a {wanted.__name__} or None, or delete the attribute first"
            raise DTypeError(type(self).__name__, problem, fix)

    def _trace_state(self) -> dict[str, Any]:
        """List what a trace of `picograd.jit` that uses this module may depend on."""
        hooked = hooks.EVERY.identities() + (self._hooks or hooks.NONE).identities()
        state = {**members.without_views(vars(self)), "training": self.training, "hooks": hooked}
        state.pop("_hooks", None)  # one that lost them all is as one that never had any
        return state

    def __delattr__(self, name: str) -> None:
        if isinstance(self.__dict__.get(name), (Parameter, Module)):
            del self.__dict__[name]
        else:
            object.__delattr__(self, name)
        members.forget(self, name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep a tensor that is state but not trained, such as a running mean.

        Only persistent buffers are part of the state dict. Raises MemberError for a name that
        something other than a buffer has.
        """
        check_name(self, "register_buffer", name, name in self._persistence)
        need_tensor("register_buffer", *([] if tensor is None else [tensor]))
        tensor = hooks.at_registration("buffer", self, name, tensor)
        vars(self)["_persistence"] = {**self._persistence, name: persistent}
        vars(self)[name] = tensor
        note_change()

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Assign a parameter by name. Raises MemberError for a name that something else has."""
        check_name(self, "register_parameter", name, self._holds(name, Parameter, self._placed))
        if param is not None and not isinstance(param, Parameter):
            problem = f"{name} is a {type(param).__name__}"
            raise DTypeError("register_parameter", problem, "pass a Parameter or None")
        if param is not None:
            param = hooks.at_registration("parameter", self, name, param)
        vars(self)["_placed"] = self._placed | {name} if param is None else self._placed - {name}
        vars(self)[name] = param
        note_change()

    def add_module(self, name: str, module: "Module | None") -> None:
        """Assign a module by name. Raises MemberError for a name that something else has."""
        check_name(self, "add_module", name, self._holds(name, Module, self._inside))
        if module is not None and not isinstance(module, Module):
            problem = f"{name} is a {type(module).__name__}"
            raise DTypeError("add_module", problem, "pass a module or None")
        module = hooks.at_registration("module", self, name, module)
        vars(self)[name] = module
        self._note_inside(name)
        note_change()

    def register_module(self, name: str, module: "Module | None") -> None:
        """Assign a module by name, as add_module does."""
        self.add_module(name, module)

    # hooks

    def _own_hooks(self) -> Hooks:
        return vars(self).setdefault("_hooks", Hooks())

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call hook(module, inputs) before forward; a result replaces the inputs.

        `with_kwargs`: hook(module, inputs, options), answering (inputs, options).
        """
        return hooks.register(self._own_hooks().before, hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Call hook(module, inputs, output) after forward; a result replaces the output.

        `with_kwargs`: hook(module, inputs, options, output). `always_call`: also after an error.

        >>> from picograd import Tensor, nn
        >>> layer = nn.ReLU()
        >>> handle = layer.register_forward_hook(lambda module, inputs, output: output + 1)
        >>> layer(Tensor([2.0])).tolist()
        [3.0]
        >>> handle.remove()
        """
        own = self._own_hooks().after
        return hooks.register(own, hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Call hook(module, output gradients) in backward; a result replaces the gradients."""
        return hooks.register(self._own_hooks().gradient_before, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Call hook(module, input gradients, output gradients) in backward.

        One entry per positional input and per result; None where no gradient flows. A result
        replaces the gradients of the inputs.
        """
        return hooks.register(self._own_hooks().gradient, hook, prepend)

    register_backward_hook = register_full_backward_hook  # the older name

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> HookHandle:
        """Call hook(module, prefix, keep_vars) before `state_dict` reads this module."""
        return hooks.register(self._own_hooks().state_before, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> HookHandle:
        """Call hook(module, state, prefix, version) once the module is in the state; may change it.

        >>> from picograd import nn
        >>> layer = nn.Linear(2, 3)
        >>> def rename(module, state, prefix, metadata):
        ...     state[prefix + "kernel"] = state.pop(prefix + "weight")
        >>> handle = layer.register_state_dict_post_hook(rename)
        >>> list(layer.state_dict())
        ['bias', 'kernel']
        """
        return hooks.register(self._own_hooks().state_after, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> HookHandle:
        """Call a hook before `load_state_dict` reads; it may change the copy of the state.

        It is called as hook(module, state, prefix, {}, strict, missing, unexpected, errors); the
        last three are lists of texts to add to.
        """
        return hooks.register(self._own_hooks().load_before, hook)

    _register_load_state_dict_pre_hook = hooks.register_before_loading
    _register_state_dict_hook = hooks.register_after_saving

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> HookHandle:
        """Call hook(module, result) when the module is loaded, before names are complained about.

        It may change the lists `result.missing_keys` and `result.unexpected_keys`.
        """
        return hooks.register(self._own_hooks().load_after, hook)

    # what is inside

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Yield (name, module) for the modules directly inside this one, each once."""
        return once((n, item) for n, item in members_of(self) if isinstance(item, Module))

    def children(self) -> Iterator["Module"]:
        """Yield the modules directly inside this one."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """Yield (path, module) for this module and all inside it, each module once."""
        return once(walk(self, prefix)) if remove_duplicate else walk(self, prefix)

    def modules(self, remove_duplicate: bool = True) -> Iterator["Module"]:
        """Yield this module and all inside it, each once."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter), a shared parameter once."""
        named = named_tensors(self, f"{prefix}." if prefix else "", recurse)
        found: Any = ((n, value) for n, value, _, is_parameter in named if is_parameter)
        return once(found) if remove_duplicate else found

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield every parameter once, in order of definition."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer) for tensors given to `register_buffer`, a shared one once."""
        named = named_tensors(self, f"{prefix}." if prefix else "", recurse)
        found = ((n, value) for n, value, _, is_parameter in named if not is_parameter)
        return once(found) if remove_duplicate else found

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield every buffer once."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> "Module":
        """Find a module by its path; "" is this one. Raises MemberError, an AttributeError."""
        return found(self, "get_submodule", target, dict(walk(self, "")))

    def set_submodule(self, target: str, module: "Module", strict: bool = False) -> None:
        """Put a module at a path. Raises MemberError for one inside a module that is not there.

        With `strict` there must be one to replace.

        >>> from picograd import nn
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> model.set_submodule("1", nn.Tanh())
        >>> model[1]
        Tanh()
        """
        if strict or not target:  # "" is this one, which has no place to put another in
            self.get_submodule(target or "?")
        setattr(self.get_submodule(target.rpartition(".")[0]), target.split(".")[-1], module)

    def get_parameter(self, target: str) -> Parameter:
        """Find a parameter by its path. Raises MemberError, an AttributeError."""
        named = dict(self.named_parameters(remove_duplicate=False))
        return found(self, "get_parameter", target, named)

    def get_buffer(self, target: str) -> Tensor:
        """Find a buffer by its path. Raises MemberError, an AttributeError."""
        return found(self, "get_buffer", target, dict(self.named_buffers(remove_duplicate=False)))

    # state

    def state_dict(
        self, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """Map the path of every parameter and persistent buffer to its tensor (not a copy).

        A shared tensor is listed under each of its paths. The tensors show the memory of the
        module's own, cut off from gradients; with `keep_vars` they are the module's own. A dict
        given as `destination` takes them.
        """
        return save(self, prefix, empty_state() if destination is None else destination, keep_vars)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write this module's own part of a state, to which a class may add."""
        for name, value, is_state, _ in named_tensors(self, prefix, recurse=False):
            if is_state:
                destination[name] = value if keep_vars else value.detach()
        if overrides(self, "get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """Give what else belongs into the state dict, under "_extra_state"; classes define it.

        >>> from picograd import nn
        >>> class Counter(nn.Module):
        ...     count = 3
        ...     def get_extra_state(self):
        ...         return self.count
        ...     def set_extra_state(self, state):
        ...         self.count = state
        >>> dict(Counter().state_dict())
        {'_extra_state': 3}
        """
        raise StateError("get_extra_state", "there is none", "define the method in the class")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave; classes that define that define this too."""
        raise StateError("set_extra_state", "there is none", "define the method in the class")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> LoadResult:
        """Overwrite parameters and buffers in place, keeping their device and dtype.

        `assign` takes device and dtype of the state over too. Raises StateError, with nothing
        changed, for a wrong shape and, when strict, for missing or unexpected names; where a hook
        watches, names are checked when all is loaded.
        """
        if not isinstance(state_dict, Mapping):
            problem = f"the state is a {type(state_dict).__name__}"
            raise DTypeError("load_state_dict", problem, "pass the dict that nn.load returns")
        given, result = prepared(self, state_dict, strict)
        own = {name: x for name, x, is_state, _ in named_tensors(self, "") if is_state}
        extra = with_extra_state(self)
        known = {**own, **extra}
        result.missing_keys.extend(name for name in known if name not in given)
        result.unexpected_keys.extend(name for name in given if name not in known)
        watching = [x for x in after_children(self) if x._hooks and x._hooks.load_after]
        if strict and not watching:
            check_names(result)
        values = {name: as_tensor(given[name], name) for name in own if name in given}
        check_shapes(own, values)
        pairs = [(own[name], value) for name, value in values.items()]
        (replace if assign else overwrite)(pairs)
        for name, module in extra.items():
            if name in given:
                module.set_extra_state(given[name])
        for module in watching:
            hooks.show(module._own_hooks().load_after, "load_state_dict", module, result)
        if strict:
            check_names(result)
        return result

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *others: Any, **named: Any
    ) -> None:
        """Load this module's own tensors, where a class changes the state before or looks after."""
        load_own(self, state_dict, prefix)

    # training

    def train(self: Self, mode: bool = True) -> Self:
        """Switch training behaviour (dropout, batch statistics) on or off."""
        if not isinstance(mode, bool):
            raise StateError("train", f"mode={mode!r} is no bool", "pass True or False")
        self.training = mode
        if asks_parts(self, "train"):
            for child in self.children():
                child.train(mode)
        else:
            for module in self.modules():
                module.training = mode
        return self

    def eval(self: Self) -> Self:
        """Switch training behaviour off."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad.detach_()
                change_gradient(parameter, Tensor.zeros_like)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Freeze (False) or unfreeze all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def apply(self: Self, fn: Callable[["Module"], Any]) -> Self:
        """Call a function on every module inside, children before parents, then on this one."""
        is_asked = asks_parts(self, "apply")
        for child in self.children() if is_asked else after_children(self):
            child.apply(fn) if is_asked else fn(child)
        if is_asked:
            fn(self)
        return self

    # device and dtype

    def to(
        self: Self,
        *args: Any,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """Move parameters and buffers to a device, dtype, or those of a tensor.

        Only floats change dtype; `memory_format` changes nothing. Parameters keep their identity,
        so that an optimizer made before still updates them; buffers are other tensors.
        """
        device, dtype, *_ = _parse_to(*args, device=device, dtype=dtype)
        if dtype is not None and not to_dtype(dtype).is_differentiable:
            problem = f"parameters need a float or complex dtype, got {to_dtype(dtype).name}"
            raise DTypeError(f"{type(self).__name__}.to", problem, "use picograd.float16 or wider")

        def moved(x: Tensor) -> Tensor:
            return x.to(device=device, dtype=dtype if x.dtype.is_differentiable else None)

        if overrides(self, "_apply") or asks_parts(self, "_apply"):
            return self._apply(moved)
        renew_buffers(self, moved)
        named = once((n, x) for n, x, *_ in named_tensors(self, ""))
        rebind_all([x for _, x in named], device, dtype)
        return self

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Give tensors, and gradients, the values that a function finds: a class may add its own.

        `to` and its like call it where a class inside has one.
        """
        for child in self.children() if recurse else ():
            child._apply(fn)
        for name, value, _, is_parameter in list(named_tensors(self, "", recurse=False)):
            if not is_parameter:
                setattr(self, name, fn(value))
                continue
            value.data = fn(value.detach())
            if value.grad is not None:
                value.grad = fn(value.grad)
        return self

    def half(self: Self) -> Self:
        """Convert floats to float16."""
        return Module.to(self, dtype=float16)

    def bfloat16(self: Self) -> Self:
        """Convert floats to bfloat16."""
        return Module.to(self, dtype=bfloat16)

    def float(self: Self) -> Self:
        """Convert floats to float32."""
        return Module.to(self, dtype=float32)

    def double(self: Self) -> Self:
        """Convert floats to float64."""
        return Module.to(self, dtype=float64)

    def type(self: Self, dst_type: Any) -> Self:
        """Convert floats to a dtype."""
        return Module.to(self, dtype=dst_type)

    def cpu(self: Self) -> Self:
        """Move to the CPU."""
        return Module.to(self, device="cpu")

    def cuda(self: Self, device: DeviceLike | int | None = None) -> Self:
        """Move to an NVIDIA GPU: the first one, unless told a number or a name."""
        return Module.to(self, device="cuda" if device is None else device)

    def to_empty(self: Self, *, device: DeviceLike | None, recurse: bool = True) -> Self:
        """Move to a device; the values are what they were, and any of tensors without values.

        >>> import picograd
        >>> with picograd.device("meta"):
        ...     layer = picograd.nn.Linear(2, 3)
        >>> layer.to_empty(device="cpu").weight.device
        'cpu'
        """
        named = once((n, x) for n, x, *_ in named_tensors(self, ""))
        rebind_all([x for _, x in named], device, None, is_empty=True)
        return self

    def share_memory(self: Self) -> Self:
        """Move parameters and buffers to memory that processes see which are started later."""
        for _, tensor, *_ in named_tensors(self, ""):
            tensor.share_memory_()
        return self

    def compile(self, *given: Any, **options: Any) -> None:
        """Accept PyTorch's wish: kernels are fused anyway."""

    # text

    def extra_repr(self) -> str:
        """Describe the settings of this module, as shown between the brackets of its repr."""
        return self._shown.format(self=self)

    def _unusual(self, **usual: Any) -> str:
        """Write the options that are not as usual: ", groups=2"."""
        found = {name: getattr(self, name, value) for name, value in usual.items()}
        return "".join(f", {k}={value}" for k, value in found.items() if value != usual[k])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of a pickle; that it is here, no `__getattr__` of users is asked."""
        self.__dict__.update(members.without_views(state))
        members.show_members(self)

    def __getstate__(self) -> dict[str, Any]:
        """Give the attributes: they have all that the views of members show."""
        return members.without_views(vars(self))

    def _get_name(self) -> str:
        return self.__class__.__name__

    def __repr__(self) -> str:
        with shown(self) as above:
            inside = named_lines(self, above)
            lines = [f"({name}): " + repr(each).replace("\n", "\n  ") for name, each in inside]
        extra, name = self.extra_repr(), self._get_name()
        if not lines and "\n" not in extra:
            return f"{name}({extra})"
        return f"{name}(\n  " + "\n  ".join((extra.split("\n") if extra else []) + lines) + "\n)"

    def _repr_html_(self) -> str:
        return str(module_html(self))


# classes of users call it; in the class, checkers would take any name for an attribute
type.__setattr__(Module, "__getattr__", hidden)
