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

# a path: the modules that have its names, the first one wins
PATHS = {
    "__config__": ("picograd.version",),
    "_C": ("picograd.absent",),
    "_C._functorch": ("picograd.absent",),
    "_dynamo": ("picograd.scripting",),
    "_dynamo._trace_wrapped_higher_order_op": ("picograd.absent",),
    "_dynamo.exc": ("picograd.absent",),
    "_dynamo.utils": ("picograd.absent",),
    "_higher_order_ops": ("picograd.tensor.transforms.scan",),
    "_higher_order_ops.associative_scan": ("picograd.tensor.transforms.scan",),
    "_tensor_str": ("picograd.tensor.core.printing",),
    "_utils": ("picograd.foreach",),
    "_vmap_internals": ("picograd.func",),
    "_subclasses": ("picograd.absent",),
    "_subclasses.fake_tensor": ("picograd.absent",),
    "ao": ("picograd.nn.quantization_names",),
    "ao.quantization": ("picograd.nn.quantization_names",),
    "autograd.function": ("picograd.autograd",),
    "autograd.grad_mode": ("picograd.autograd",),
    "autograd.profiler": ("picograd.profiler",),
    "autograd.variable": ("picograd.autograd",),
    "compiler": ("picograd.scripting",),
    "cuda.memory": ("picograd.cuda",),
    "cuda.random": ("picograd.cuda",),
    "distributed._composable": ("picograd.distributed",),
    "distributed._composable.fsdp": ("picograd.distributed",),
    "distributed._tensor": ("picograd.distributed",),
    "distributed._tensor.experimental": ("picograd.distributed",),
    "distributed.device_mesh": ("picograd.distributed",),
    "distributed.fsdp": ("picograd.distributed",),
    "distributed.nn": ("picograd.distributed",),
    "distributed.rpc": ("picograd.distributed",),
    "distributed.tensor": ("picograd.distributed",),
    "distributions.multivariate_normal": (
        "picograd.distributions",
        "picograd.distributions.multivariate",
    ),
    "fft": ("picograd.tensor.linalg.fourier",),
    "fx.experimental.proxy_tensor": ("picograd.absent",),
    "functional": ("picograd",),
    "futures": ("picograd.scripting", "concurrent.futures"),
    "jit": ("picograd.scripting",),
    "jit.annotations": ("typing", "picograd.absent"),
    "linalg": ("picograd.tensor.linalg.decompositions",),
    "multiprocessing": ("multiprocessing",),
    "nn._reduction": ("picograd.nn.torch_names",),
    "nn.attention.flex_attention": ("picograd.nn.flex_attention",),
    "nn.common_types": ("picograd.nn.torch_names",),
    "nn.modules": ("picograd.nn", "picograd.nn.torch_names"),
    "nn.quantized": ("picograd.nn.quantization_names", "picograd.nn"),
    "nn.utils.clip_grad": ("picograd.nn.utils",),
    "nn.utils.convert_parameters": ("picograd.nn.utils",),
    "nn.utils.spectral_norm": ("picograd.nn.utils",),
    "nn.utils.stateless": ("picograd.nn.stateless",),
    "nn.utils.weight_norm": ("picograd.nn.utils",),
    "onnx.operators": ("picograd.onnx.torch_options",),
    "overrides": ("picograd.absent",),
    "quantization": ("picograd.nn.quantization_names",),
    "quantization.observer": ("picograd.nn.quantization_names",),
    "quantization.qconfig": ("picograd.nn.quantization_names",),
    "random": ("picograd", "picograd.tensor.making.random"),
    "serialization": ("picograd", "picograd.nn.torch_names", "picograd.nn.safe_globals"),
    "signal": ("picograd.windows",),
    "signal.windows": ("picograd.windows",),
    "signal.windows.windows": ("picograd.windows",),
    "special": ("picograd.tensor.math.special",),
    "storage": ("picograd.absent", "picograd.tensor.core.methods_family"),
    "torch": ("picograd",),
    "torch_version": ("picograd.version",),
    "types": ("picograd.nn.torch_names", "picograd"),
    "utils._foreach_utils": ("picograd.foreach",),
    "utils._python_dispatch": ("picograd.absent",),
    "utils.benchmark": ("picograd.benchmark",),
    "utils.cpp_extension": ("picograd.absent",),
    "utils.data._utils": ("picograd.nn.collate",),
    "utils.data._utils.collate": ("picograd.nn.collate",),
    "utils.data._utils.pin_memory": ("picograd.nn.collate",),
    "utils.dlpack": ("picograd", "picograd.tensor.core.exchange"),
    "utils.hooks": ("picograd.nn.torch_names",),
    "utils.model_zoo": ("picograd.hub",),
    "xpu": ("picograd.mps",),
}
# modules of other packages that we have
OUTSIDE = {
    "einops.layers.picograd": ("picograd.einops_layers",),
    "safetensors.picograd": ("picograd.nn.safetensors_names",),
}
# modules of others, and what is imported after them
AFTER = {"autoray.autoray": "picograd.autoray_names", "einops._backends": "picograd.einops_backend"}
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
    "fx": ("experimental", "graph", "graph_module", "node", "proxy"),
    "nn.modules": (
        "activation", "batchnorm", "container", "conv", "distance", "dropout", "fold",
        "instancenorm", "lazy", "linear", "loss", "module", "normalization", "padding",
        "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling", "utils",
    ),
    "nn.parallel": ("data_parallel", "distributed", "scatter_gather"),
    "optim": ("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "nadam", "radam",
              "rmsprop", "rprop", "sgd"),
}  # fmt: skip
for room, files in FILES.items():
    homes = PATHS.get(room, (f"picograd.{room}",))
    PATHS = {f"{room}.{name}": homes for name in files} | PATHS


class Elsewhere(ModuleType):
    """This class is a module whose names other modules have."""

    homes: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> object:
        """Look a name up in the homes. Raises AttributeError."""
        if name == "__all__":
            return list(importlib.import_module(self.homes[0]).__all__)
        path = f"{self.__name__}.{name}"
        if path.partition(".")[2] in PATHS:
            return importlib.import_module(path)
        for home in () if name.startswith("__") else self.homes:
            module = importlib.import_module(home)
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


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


class Watcher:
    """This class adds to modules as they run: to others' what knows us, to ours the paths below."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of others as Python does, and add to how it is run."""
        if fullname not in AFTER and fullname not in ABOVE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        loader: Any = spec and spec.loader
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
