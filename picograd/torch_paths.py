"""PyTorch's modules that have no file here: `from picograd.nn.modules.batchnorm import _BatchNorm`.

A finder that Python asks last makes a module of a path below; its names are looked up in the rooms
of the row. Nothing is imported before a program asks. A finder that Python asks first tells einops
about tensors when a program imports it, and our modules of the paths below them.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

# a module: the paths that have its names
HOMES = {
    "absent": (
        "_C", "_C._functorch", "_custom_ops", "_dynamo._trace_wrapped_higher_order_op",
        "_dynamo.exc", "_dynamo.utils", "_subclasses",
        "_subclasses.fake_tensor", "fx.experimental.proxy_tensor", "overrides",
        "utils._python_dispatch", "utils._triton", "utils.cpp_extension", "utils.flop_counter",
    ),
    "amp": ("amp.autocast_mode", "amp.grad_scaler", "cpu.amp"),
    "autograd": ("autograd.function", "autograd.grad_mode", "autograd.variable"),
    "benchmark": ("utils.benchmark",),
    "cuda": ("cuda.memory", "cuda.random"),
    "distributed": (
        "distributed._composable", "distributed._composable.fsdp", "distributed._tensor",
        "distributed._tensor.experimental", "distributed.algorithms",
        "distributed.algorithms._checkpoint",
        "distributed.algorithms._checkpoint.checkpoint_wrapper", "distributed.autograd",
        "distributed.device_mesh", "distributed.distributed_c10d",
        "distributed.elastic", "distributed.elastic.multiprocessing",
        "distributed.elastic.multiprocessing.errors", "distributed.fsdp", "distributed.fsdp.api",
        "distributed.fsdp.fully_sharded_data_parallel", "distributed.fsdp.wrap", "distributed.nn",
        "distributed.optim", "distributed.rpc", "distributed.tensor",
    ),
    "foreach": ("utils._foreach_utils",),
    "func": (
        "_functorch", "_functorch.apis", "_functorch.deprecated",
        "_functorch.eager_transforms", "_functorch.functional_call",
        "_functorch.make_functional", "_functorch.python_key", "_vmap_internals",
    ),
    "hub": ("utils.model_zoo",),
    "mps": ("xpu",),
    "nn.collate": (
        "utils.data._utils", "utils.data._utils.collate", "utils.data._utils.pin_memory",
    ),
    "nn.loader": ("utils.data._utils.worker",),
    "nn.flex_attention": ("nn.attention.flex_attention", "nn.attention.varlen"),
    "nn.quantization_names": (
        "ao", "ao.quantization", "quantization", "quantization.observer", "quantization.qconfig",
    ),
    "nn.stateless": ("nn.utils._named_member_accessor", "nn.utils.stateless"),
    "nn.torch_names": ("nn._reduction", "nn.common_types", "utils.hooks"),
    "nn.utils": (
        "nn.utils.clip_grad", "nn.utils.convert_parameters", "nn.utils.spectral_norm",
        "nn.utils.weight_norm",
    ),
    "onnx.torch_options": (
        "onnx.operators", "onnx.symbolic_helper", "onnx.symbolic_opset11", "onnx.symbolic_opset9",
    ),
    "profiler": ("autograd.profiler",),
    "scripting": (
        "_dynamo.config", "_inductor", "_inductor.config", "_logging", "compiler", "jit",
    ),
    "tensor.core.autograd": ("utils._contextlib",),
    "settings": ("utils._device",),
    "tensor.core.printing": ("_tensor_str",),
    "tensor.linalg.decompositions": ("linalg",),
    "tensor.linalg.fourier": ("fft",),
    "tensor.math.special": ("special",),
    "higher_order": (
        "_higher_order_ops", "_higher_order_ops.associative_scan", "_higher_order_ops.cond",
        "_higher_order_ops.map", "_higher_order_ops.scan", "_higher_order_ops.while_loop",
    ),
    "tensor.transforms.tree_specs": ("utils._pytree",),
    "version": ("__config__", "torch_version"),
    "windows": ("signal", "signal.windows", "signal.windows.windows"),
}  # fmt: skip
# a path: the modules that have its names, the first one wins
PATHS = {path: (f"picograd.{home}",) for home, paths in HOMES.items() for path in paths} | {
    "distributions.multivariate_normal": (
        "picograd.distributions",
        "picograd.distributions.multivariate",
    ),
    "_dynamo": ("picograd.scripting", "picograd.nn.compiled"),
    "_dynamo.eval_frame": ("picograd.nn.compiled", "picograd.absent"),
    "_functorch.vmap": (
        "picograd.func",
        "picograd.absent",
        "picograd.tensor.transforms.tree_specs",
    ),
    "_utils": ("picograd.foreach", "picograd.accelerator", "picograd.nn.plain_pickle"),
    "_C._nn": ("picograd.nn.walks", "picograd.nn.functional"),
    "functional": ("picograd",),
    "jit.annotations": ("typing", "picograd.absent"),
    "multiprocessing": ("picograd.processes", "multiprocessing"),
    "nn.modules": ("picograd.nn", "picograd.nn.torch_names"),
    "nn.quantized": ("picograd.nn.quantization_names", "picograd.nn"),
    "optim.lbfgs": ("picograd.optim", "picograd.nn.optim.lbfgs"),
    "random": ("picograd", "picograd.tensor.making.random"),
    "serialization": ("picograd", "picograd.nn.torch_names", "picograd.nn.safe_globals"),
    "storage": (
        "picograd.absent",
        "picograd.tensor.core.methods_family",
        "picograd.nn.plain_pickle",
    ),
    "_tensor": ("picograd",),
    "torch": ("picograd",),
    "types": ("picograd.nn.torch_names", "picograd"),
    "utils.dlpack": ("picograd", "picograd.tensor.core.exchange"),
}
# modules of other packages that we have
OUTSIDE = {
    "einops.layers.picograd": ("picograd.einops_layers",),
    "safetensors.picograd": ("picograd.nn.safetensors_names",),
}
# modules of others, and what is imported after them
AFTER = {
    "autoray.autoray": "picograd.autoray_names",
    "einops._backends": "picograd.einops_backend",
    "opt_einsum.backends.dispatch": "picograd.opt_einsum_names",
}
# files of PyTorch whose names are those of the room above
FILES = {
    "distributions": (
        "bernoulli", "beta", "binomial", "categorical", "cauchy", "chi2", "dirichlet",
        "exp_family", "exponential", "fishersnedecor", "gamma", "generalized_pareto", "geometric",
        "gumbel", "half_cauchy", "half_normal", "independent", "inverse_gamma", "kumaraswamy",
        "laplace", "lkj_cholesky", "log_normal", "logistic_normal", "lowrank_multivariate_normal",
        "mixture_same_family", "multinomial", "multivariate_normal", "negative_binomial",
        "normal", "one_hot_categorical", "pareto", "poisson", "relaxed_bernoulli",
        "relaxed_categorical", "studentT", "transformed_distribution", "uniform", "weibull",
        "wishart",
    ),
    "fx": (
        "_symbolic_trace", "experimental", "graph", "graph_module", "node", "passes",
        "passes.shape_prop", "proxy", "subgraph_rewriter",
    ),
    "nn.modules": (
        "activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance",
        "dropout", "flatten", "fold", "instancenorm", "lazy", "linear", "loss", "module",
        "normalization", "padding", "pixelshuffle", "pooling", "rnn", "sparse", "transformer",
        "upsampling", "utils",
    ),
    "nn.parallel": ("data_parallel", "distributed", "scatter_gather"),
    "optim": ("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "nadam", "radam",
              "rmsprop", "rprop", "sgd"),
}  # fmt: skip
for room, files in FILES.items():
    homes = PATHS.get(room, (f"picograd.{room}",))
    if room == "nn.modules":  # `from torch.nn.modules.conv import Tensor`: what those files import
        homes += ("picograd.nn.init", "picograd.nn.utils.rnn", "picograd")
    PATHS = {f"{room}.{name}": homes for name in files} | PATHS


# rooms with functions that are named as the files below
FUNCTIONS = {
    "picograd._higher_order_ops": ("associative_scan", "cond", "map", "scan", "while_loop")
}


class Elsewhere(ModuleType):
    """This class is a module whose names other modules have."""

    homes: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> object:
        """Look a name up in the homes. Raises AttributeError."""
        if name == "__all__":
            return list(importlib.import_module(self.homes[0]).__all__)
        path = f"{self.__name__}.{name}"
        if path.partition(".")[2] in PATHS and not self.has_function(name):
            return importlib.import_module(path)
        for home in () if name.startswith("__") and name != "__file__" else self.homes:
            module = importlib.import_module(home)
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        """Set a name, as an import of a path below does: a function hides a file of its name."""
        if not (isinstance(value, Elsewhere) and self.has_function(name)):
            super().__setattr__(name, value)

    def has_function(self, name: str) -> bool:
        """Tell whether functions of this room are in files of their names."""
        return name in FUNCTIONS.get(self.__name__, ())


class Finder:
    """This class makes the modules of PATHS: it finds and it loads them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a path of ours, as Python's import asks."""
        loader: Any = self  # no `Loader` by class: those take as long to import as a room
        is_ours = homes_of(fullname) is not None
        return ModuleSpec(fullname, loader, is_package=True) if is_ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module."""
        module = Elsewhere(spec.name)
        module.homes = homes_of(spec.name) or ()
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Keep what the room above has under this name: `picograd.jit` is a function."""
        above, _, name = module.__name__.rpartition(".")
        known = vars(sys.modules[above]).get(name)
        if known is not None:
            sys.modules[module.__name__] = known
        elif above == "picograd.nn.modules":  # programs look for classes in all that is there
            home = importlib.import_module("picograd.nn")
            vars(module).update({each: getattr(home, each) for each in home.__all__})


# modules of ours below which there are such paths: `picograd.autograd.function`
ABOVE = {f"picograd.{path.rpartition('.')[0]}" for path in PATHS if "." in path}
ABOVE -= {f"picograd.{path}" for path in PATHS} | {"picograd.nn"}


class Renamed:
    """This class gives `torch.nn` our module after `sys.modules["torch"] = picograd`, no second.

    The package `functorch`, which installs with PyTorch and has its transforms, is `picograd.func`.
    """

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave that to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Put ours in the place of the module. Raises ModuleNotFoundError."""
        below = module.__name__.partition(".")[2] or "func"
        sys.modules[module.__name__] = importlib.import_module(f"picograd.{below}")


class Watcher:
    """This class adds to modules as they run: to others' what knows us, to ours the paths below."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of others as Python does, and add to how it is run."""
        root, _, below = fullname.partition(".")
        kept = "torch" if fullname == "functorch" else root if below else "picograd"
        if kept != "picograd" and sys.modules.get(kept) is sys.modules["picograd"]:
            loader: Any = Renamed()
            return ModuleSpec(fullname, loader)
        if fullname not in AFTER and fullname not in ABOVE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        loader = spec and spec.loader
        if loader is not None:
            run = loader.exec_module

            def run_both(module: ModuleType) -> None:
                run(module)
                if fullname in ABOVE:
                    show_below(module)
                else:
                    importlib.import_module(AFTER[fullname])

            loader.exec_module = run_both
        return spec


def show_below(module: ModuleType) -> None:
    """Let the paths below a module be attributes of it, imported when they are asked for."""

    def find(name: str) -> object:
        path = f"{module.__name__}.{name}"
        if path.partition(".")[2] in PATHS:
            return importlib.import_module(path)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module).setdefault("__getattr__", find)


def homes_of(fullname: str) -> tuple[str, ...] | None:
    """Find the row of a module."""
    root, _, path = fullname.partition(".")
    return PATHS.get(path) if root == "picograd" else OUTSIDE.get(fullname)


def install() -> None:
    """Let Python's import ask for these paths, and tell those who were imported before."""
    if any(isinstance(each, Finder) for each in sys.meta_path):
        return
    sys.meta_path.append(Finder())
    sys.meta_path.insert(0, Watcher())
    for name in ABOVE & set(sys.modules):
        show_below(sys.modules[name])
    for name, ours in AFTER.items():
        if name in sys.modules:
            importlib.import_module(ours)
