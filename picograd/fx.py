"""Programs as graphs that can be rewritten, under PyTorch's names of torch.fx.

    graph_module = fx.symbolic_trace(model)
    for node in graph_module.graph.nodes: ...

A `Graph` lists operations by name; an `Interpreter` runs them. What `GraphModule.forward` does is
read from its graph, so `recompile` has nothing to do, and `code` is there to be read.
"""

import builtins
import dis
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from picograd.errors import StateError
from picograd.fx_graph import Graph, Match, Node, Standin, find_matches, found_in, map_arg
from picograd.nn.module import Module
from picograd.tensor import public
from picograd.tensor.tensor import Tensor

__path__: list[str] = []  # so that Python asks for PyTorch's modules below
Target = Argument = Any  # annotations of PyTorch's programs
FIX = "leave it out of the module, or choose by values that are not traced"


class TracerBase:
    """This class adds to a graph what programs do with proxies."""

    graph: Graph

    def create_node(self, *given: Any, **options: Any) -> Node:
        """Add an operation."""
        return self.graph.create_node(*given, **options)

    def proxy(self, node: Node) -> "Proxy":
        """Stand for the result of a node."""
        return Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        """Turn an argument into what a node has. Raises StateError for a tensor of parameters."""
        if isinstance(a, (tuple, list)) and not hasattr(a, "_fields"):
            return type(a)(map(self.create_arg, a))
        if isinstance(a, dict):
            return {key: self.create_arg(each) for key, each in a.items()}
        if isinstance(a, Tensor) and a.requires_grad:
            problem = "a tensor was computed from parameters alone, and would stay as it is"
            raise StateError("fx", problem, FIX)
        return a.node if isinstance(a, Proxy) else map_arg(a, self.create_arg)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: Any = None, *rest: Any
    ) -> "Proxy":
        """Add an operation, and stand for its result."""
        given = self.create_arg(args), self.create_arg(kwargs)
        return self.proxy(self.create_node(kind, target, *given, name))


class GraphAppendingTracer(TracerBase):
    """This class adds to a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def refused(what: str) -> Callable[..., NoReturn]:
    """Make a method that raises: the value is not known yet."""

    def refuse(self: Any) -> NoReturn:
        raise StateError("fx", f"{what} of {self!r} is not known while a program is traced", FIX)

    return refuse


class Proxy(Standin):
    """This class stands for a value: what is done with it becomes nodes of a graph."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = tracer or GraphAppendingTracer(node.graph)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # functions of tensors look for what they would find in one
            raise AttributeError(name)
        return Attribute(self, name)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __iter__(self) -> Iterator[Any]:
        frame: Any = sys._getframe(1)
        codes = dis.get_instructions(frame.f_code)
        unpack = next(each for each in codes if each.offset >= frame.f_lasti)
        if unpack.opname != "UNPACK_SEQUENCE":
            refused("the length")(self)
        return (self[at] for at in range(unpack.argval))

    def __getitem__(self, at: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, at), {})

    __bool__ = refused("the truth")
    __len__ = refused("the length")
    __int__ = __float__ = __index__ = refused("the value")

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        tracer, name = found_in(args, kwargs)[0].tracer, getattr(function, "__name__", "")
        if name == "einsum" and len(args) == 2 and isinstance(args[1], (tuple, list)):
            args = (args[0], *args[1])  # rewriters of products read operands one by one
        if getattr(Tensor, name, None) is function:  # a proxy's methods are `Attribute`s
            function = getattr(public, name, function)
        return tracer.create_proxy("call_function", function, args, kwargs or {})


def operation(name: str, is_reflected: bool) -> Callable[..., Proxy]:
    """Make an operator's method."""
    function = getattr(operator, name)

    def call(self: Proxy, *others: Any) -> Proxy:
        args = (*others, self) if is_reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return call


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor")
for each in (*BINARY, "lt", "le", "eq", "ne", "gt", "ge", "neg", "pos", "abs", "invert"):
    short = each.rstrip("_")
    setattr(Proxy, f"__{short}__", operation(each, False))
    if each in BINARY:
        setattr(Proxy, f"__r{short}__", operation(each, True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


class Attribute(Proxy):
    """This class stands for an attribute of a value: a method, once it is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer

    def __repr__(self) -> str:  # in errors that are caught: it adds no node
        return f"{self.root!r}.{self.attr}"

    @functools.cached_property
    def node(self) -> Node:  # type: ignore[override]
        """Read the attribute."""
        args = (self.root, self.attr)
        return self.tracer.create_proxy("call_function", getattr, args, {}).node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        """Call the method."""
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def wrap(fn_or_name: Any) -> Any:
    """Let calls of a function with proxies be one node; by name, one that the module has.

    >>> import picograd.fx
    >>> @picograd.fx.wrap
    ... def twice(x):
    ...     return x * 2
    >>> twice(3)
    6
    """
    place = sys._getframe(1).f_globals
    is_name = isinstance(fn_or_name, str)
    function: Any = fn_or_name
    if is_name:
        function = place.get(fn_or_name) or getattr(builtins, fn_or_name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = found_in(args, kwargs)
        if not found:
            return function(*args, **kwargs)
        return found[0].tracer.create_proxy("call_function", call, args, kwargs)

    if not is_name:
        return call
    place[fn_or_name] = call
    return fn_or_name


class Tracer(TracerBase):
    """This class runs a module or a function on proxies, and gives the graph of what it does."""

    traced_func_name = "forward"

    def __init__(self, autowrap_modules: Any = (), autowrap_functions: Any = ()) -> None:
        self.root: Any = None

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Tell whether a call of a module is one node: those of `nn` are."""
        return type(m).__module__.startswith("picograd.nn") and "Sequential" not in type(m).__name__

    def path_of_module(self, mod: Module) -> str:
        """Find the path of a module below the root."""
        for name, each in self.root.named_modules():
            if each is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Any, args: Any, kwargs: Any) -> Any:
        """Add a call of a module, or what the module does."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def create_arg(self, a: Any) -> Any:
        """Turn an argument into what a node has: a parameter becomes its path."""
        if not isinstance(a, Tensor):
            return super().create_arg(a)
        for members in (self.root.named_parameters(), self.root.named_buffers()):
            for name, each in members:
                if each is a:
                    return self.create_node("get_attr", name)
        super().create_arg(a)
        known = {name: each for name, each in vars(self.root).items() if "_tensor_constant" in name}
        same = [name for name, each in known.items() if each is a]
        name = same[0] if same else f"_tensor_constant{len(known)}"
        setattr(self.root, name, a)
        return self.create_node("get_attr", name)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Run a module or a function on proxies. `concrete_args` gives arguments their values."""
        self.graph = Graph(tracer_cls=type(self))
        self.root = root if isinstance(root, Module) else Module()
        function = getattr(root, self.traced_func_name) if isinstance(root, Module) else root
        given: dict[str, Any] = {}
        for name, each in inspect.signature(function).parameters.items():
            if concrete_args is not None and name in concrete_args:
                given[name] = concrete_args[name]
            elif each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                default = () if each.default is each.empty else (each.default,)
                given[name] = self.create_proxy("placeholder", name, default, {})
        plain = Module.__call__

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            forward = functools.partial(plain, module)
            if not found_in(args, kwargs):
                return forward(*args, **kwargs)
            return self.call_module(module, forward, args, kwargs)

        type.__setattr__(Module, "__call__", call)
        try:
            self.graph.output(self.create_arg(function(**given)))
        finally:
            type.__setattr__(Module, "__call__", plain)
        return self.graph


class GraphModule(Module):
    """This class is a module that does what a graph says, with the members that the graph names."""

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.graph = graph
        self.class_name = class_name
        self.training = getattr(root, "training", True)
        for node in graph.nodes:
            if node.op in ("call_module", "get_attr") and root is not self:
                _copy_attr(root, self, node.target)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        places = [node for node in self.graph.nodes if node.op == "placeholder"]
        names = [node.target for node in places]
        given = dict(zip(names, args)) | kwargs
        return Interpreter(self).run(given=given)

    @property
    def code(self) -> str:
        """Write what the module does in Python."""
        return self.graph.python_code().src

    def print_readable(self, print_output: bool = True) -> str:
        """Print `code`, and give it."""
        if print_output:
            print(self.code)
        return self.code

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path, whose beginning is made if it is missing."""
        _copy_attr({target: m}, self, target)
        return True

    def recompile(self) -> None:
        """Do nothing: the graph is read at each call."""

    delete_all_unused_submodules = recompile

    def _get_name(self) -> str:
        return str(vars(self).get("class_name", type(self).__name__))


_CodeOnlyModule, _USER_PRESERVED_ATTRIBUTES_KEY = Module, "_user_preserved_attributes"


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Give a module what a path of another one, or a dict by paths, leads to."""
    *above, name = target.split(".")
    is_dict = isinstance(from_module, dict)
    found = from_module[target] if is_dict else attribute(from_module, target)
    for each in above:
        if not hasattr(to_module, each):
            setattr(to_module, each, Module())
        to_module = getattr(to_module, each)
    if hasattr(to_module, name):
        return
    if isinstance(found, Tensor) and not found.requires_grad:
        to_module.register_buffer(name, found)
    else:
        setattr(to_module, name, found)


def attribute(root: Any, path: str) -> Any:
    """Follow a path of attributes."""
    return functools.reduce(getattr, path.split("."), root)


class Interpreter:
    """This class runs a graph node by node; a class derived from it changes how."""

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Any = None) -> None:
        self.module = module
        self.graph: Graph = graph or module.graph
        self.env: dict[Node, Any] = {}

    def run(self, *args: Any, initial_env: Any = None, given: Any = None) -> Any:
        """Run the graph on arguments; `given` has them by name."""
        self.env = dict(initial_env or {})
        self.given = given or {}
        self.args = iter(args)
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
        return None

    def run_node(self, n: Node) -> Any:
        """Compute one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """Give a node's arguments their values."""
        find = self.env.__getitem__
        args = map_arg(n.args, find)
        return args, map_arg(n.kwargs, find)

    def fetch_attr(self, target: str) -> Any:
        """Follow a path of the module."""
        return attribute(self.module, target)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Give an argument. Raises StateError for one that is missing."""
        if target in self.given:
            return self.given[target]
        for each in self.args:
            return each
        if args:
            return args[0]
        raise StateError("fx", f"the argument {target!r} is missing", "pass it")

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Give a member of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a module below."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Give the result."""
        return args[0]


class TensorMetadata(NamedTuple):
    """This class is what is known of a tensor beside its values."""

    shape: tuple[int, ...]
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]


def facts_of(value: Any) -> Any:
    """Find what is known of a tensor, or of each of several; None of what is none."""
    if isinstance(value, (tuple, list)):
        return tuple(map(facts_of, value))
    if not isinstance(value, Tensor):
        return None
    return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride())


class ShapeProp(Interpreter):
    """This class runs a graph and notes in `meta["tensor_meta"]` of its nodes what tensors are."""

    def run_node(self, n: Node) -> Any:
        """Compute one node, and note what it gives."""

        result = super().run_node(n)
        n.meta["type"] = type(result)
        found = facts_of(result)
        if found is not None:
            n.meta["tensor_meta"] = found
        return result

    propagate = Interpreter.run


class Transformer(Interpreter):
    """This class runs a graph on proxies: what a derived class changes is in the new graph."""

    def transform(self) -> GraphModule:
        """Make the new module."""
        graph = Graph()
        tracer = GraphAppendingTracer(graph)
        places = [node for node in self.graph.nodes if node.op == "placeholder"]
        known = {node: tracer.proxy(graph.node_copy(node)) for node in places}
        graph.output(map_arg(self.run(initial_env=known), lambda each: each.node))
        return GraphModule(self.module, graph)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Read a member in the new graph."""
        return self._add("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a module in the new graph."""
        return self._add("call_module", target, args, kwargs)

    def _add(self, op: str, target: Any, args: Any, kwargs: Any) -> Any:
        tracer: Any = next(each.tracer for each in self.env.values() if isinstance(each, Proxy))
        return tracer.create_proxy(op, target, args, kwargs)


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Make a module of the operations that a module, or a function, does with its arguments.

    Layers of `nn` stay calls. Raises StateError where the program asks for a value, as `if` does.

    >>> from picograd import Tensor, fx
    >>> traced = fx.symbolic_trace(lambda x: x.exp() * 2)
    >>> [node.name for node in traced.graph.nodes], traced(Tensor([0.0])).tolist()
    (['x', 'exp', 'mul', 'output'], [2.0])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace what a function computes, wherever a graph has it, by what another one does.

    Functions or graph modules of the same arguments. A match ends anywhere; where two share a node
    the first is replaced. Raises StateError for another number of arguments.

    >>> from picograd import Tensor, fx
    >>> traced = fx.symbolic_trace(lambda x: x.exp().log() * 2)
    >>> len(fx.replace_pattern(traced, lambda x: x.exp().log(), lambda x: x))
    1
    >>> [node.name for node in traced.graph.nodes]
    ['x', 'mul', 'output']
    """
    old, new = map(traced_once, (pattern, replacement))
    inputs = old.graph.find_nodes(op="placeholder")
    places = new.graph.find_nodes(op="placeholder")
    if len(inputs) != len(places):
        problem = f"{len(inputs)} arguments of the pattern, {len(places)} of the replacement"
        raise StateError("fx.replace_pattern", problem, "let both take the same arguments")
    for node in new.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            _copy_attr(new, gm, node.target)
    graph = gm.graph
    matches = find_matches(graph, old.graph)
    moved: dict[Node, Node] = {}  # the end of a match -> what is there now
    for match in matches:
        anchor, found = match
        given = [found.pop(each) for each in inputs]
        known: dict[Node, Any] = {}
        for place, node in zip(places, given):
            known[place] = moved.get(node, node)
        with graph.inserting_before(anchor):
            made = graph.graph_copy(new.graph, known)
        anchor.replace_all_uses_with(made)
        moved[anchor] = made
        inside = set(found.values())
        for node in reversed(list(graph.nodes)):
            if node in inside:
                graph.erase_node(node)
        found.update(zip(inputs, given))
    return matches


def traced_once(program: Any) -> GraphModule:
    """Trace a function; a graph module is one already."""
    return program if isinstance(program, GraphModule) else symbolic_trace(program)
