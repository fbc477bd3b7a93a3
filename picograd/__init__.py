"""picograd: a deep-learning framework that reads like a textbook and runs like the hardware.

Tensors record a lazy graph; a scheduler fuses it into few kernels, which are generated and
compiled at run time. The rooms, each importing only those before it:

    dtype, buffer, target   plain data            graph     what to compute
    schedule                which kernels         codegen   how one kernel is written
    runtime                 where it runs         engine    when
    tensor                  the class users know  nn        layers, losses, optimizers
"""

from typing import TYPE_CHECKING

from picograd.first_import import first_import

with first_import():
    from picograd.config import config
    from picograd.device_name import device
    from picograd.dtype import DType as dtype  # noqa: F401
    from picograd.dtype import (
        bfloat16,
        complex64,
        complex128,
        float8_e4m3fn,
        float8_e5m2,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )  # fmt: skip
    from picograd.dtype import bool_ as bool
    from picograd.dtype import float8_e4m3fn as float8_e4m3
    from picograd.engine.profile import profile
    from picograd.explain import explain
    from picograd.late_names import find
    from picograd.scripting import JIT
    from picograd.tensor import families, public
    from picograd.tensor.core.autocast import autocast, get_autocast_dtype, is_autocast_enabled
    from picograd.tensor.core.autograd import (
        enable_grad,
        inference_mode,
        is_grad_enabled,
        no_grad,
        set_grad_enabled,
    )
    from picograd.tensor.core.guard import guard_functions
    from picograd.tensor.core.inspect import memory_stats, plan, synchronize
    from picograd.tensor.core.printing import set_printoptions
    from picograd.tensor.core.subclasses import publish
    from picograd.tensor.families import *  # noqa: F403
    from picograd.tensor.linalg import decompositions as linalg
    from picograd.tensor.linalg import fourier as fft
    from picograd.tensor.making.random import Generator
    from picograd.tensor.math import special
    from picograd.tensor.tensor import Tensor
    from picograd.tensor.transforms.custom import Function, checkpoint, hessian, jacobian, jvp, vjp
    from picograd.tensor.transforms.jit import jit
    from picograd.tensor.transforms.jit_sizes import Dim
    from picograd.tensor.transforms.scan import scan
    from picograd.tensor.transforms.vmap import vmap
    from picograd.torch_paths import install
    from picograd.version import __version__
    from picograd.view import view

__all__ = [
    "Function", "Generator", "Tensor", "bfloat16", "bool", "checkpoint", "complex64",
    "complex128", "config", "enable_grad", "explain", "fft", "float8_e4m3", "float8_e4m3fn",
    "float8_e5m2", "float16", "float32", "float64", "hessian", "inference_mode", "int8", "int16",
    "int32", "int64", "is_grad_enabled", "jacobian", "jit", "jvp", "linalg", "no_grad", "plan",
    "profile", "scan", "set_grad_enabled", "set_printoptions", "synchronize", "uint8", "uint16",
    "uint32", "uint64", "view", "vjp", "vmap",
]  # fmt: skip
__all__ += families.__all__
__all__ += public.__all__
__all__ += ["Dim", "__version__", "autocast", "device", "get_autocast_dtype"]
__all__ += ["is_autocast_enabled", "memory_stats", "special"]

install()
vars(jit).update(JIT)  # PyTorch's torch.jit is a module
jit.__name__ = "picograd.jit"  # an import from it that fails names that
guard_functions(globals(), ("set_printoptions", "get_autocast_dtype", "is_autocast_enabled"))
publish(globals(), ("get_autocast_dtype", "is_autocast_enabled", "is_grad_enabled"))

if TYPE_CHECKING:
    from picograd import (  # noqa: I001
        accelerator as accelerator, amp as amp, autograd as autograd, backends as backends,
        cpu as cpu, cuda as cuda, distributed as distributed, distributions as distributions,
        func as func, fx as fx, hub as hub, library as library, mps as mps, nn as nn,
        optim as optim, profiler as profiler, testing as testing, utils as utils,
    )  # fmt: skip
    from picograd.amp import GradScaler as GradScaler
    from picograd.library import ops as ops
    from picograd.nn.files_of_objects import load as load
    from picograd.nn.files_of_objects import save as save
    from picograd.scripting import compile as compile
    from picograd.settings import *  # noqa: F403
    from picograd.tensor.making.from_data import tensor as tensor
    from picograd.tensor.public import *  # noqa: F403
    from picograd.typed import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        """Make a function, import a room, or what is in it, at its first use: `picograd.nn`."""
        is_public = name in vars(public)["_rows"]
        found = globals()[name] = getattr(public, name) if is_public else find(name)
        return found

    def __dir__() -> list[str]:
        """List all names, those too that are made at their first use."""
        return sorted({*globals(), *__all__})


del TYPE_CHECKING
