"""Build small kernels, run their CUDA text on the host through the shim, compile it with NVRTC."""

import atexit
import ctypes
import glob
import hashlib
import shutil
import subprocess
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cuda.bindings import nvrtc

from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.linearize_cuda_roles import CELLS
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render import opencl
from picograd.codegen.render.c import CUDA_C, Dialect, type_name
from picograd.codegen.render.cuda import render
from picograd.codegen.tile import TileKernel
from picograd.codegen.tile import verify as verify_tiles
from picograd.conversion import from_bits, to_bits
from picograd.dtype import DType, accumulate_dtype
from picograd.schedule.index import Axis, axis_index, flatten
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.target import Target, cuda_target

H200 = cuda_target("sm_90a")
HERE = Path(__file__).parent
HOST_COMPILER = (
    "g++", "-std=c++17", "-O0", "-w", "-mfma", "-ffp-contract=off", "-fPIC", "-DCUDA_SHIM",
)  # fmt: skip
OPTIONS = ("--std=c++17", "--ptxas-options=-v", "--device-as-default-execution-space")


def load(slot: int, index, dtype: DType) -> Expr:
    return Expr("load", (), (slot, index), dtype)


def row_major(*axes: Axis):
    return flatten([axis_index(a) for a in axes], [a.size for a in axes])


def matmul_kernel(m, n, k, dtype, a="mk", b="kn", out="mn", batch=1, out_dtype=None, epilogue=None):
    """out = a @ b with the memory order of each array given by its axis letters."""
    axes = {"m": Axis("m", m), "n": Axis("n", n), "k": Axis("k", k), "z": Axis("z", batch)}
    sum_dtype = accumulate_dtype(dtype)

    def order(text):
        return row_major(*(axes[c] for c in "z" + text))

    def wide(expr):
        return expr if sum_dtype is dtype else Expr("cast", (expr,), None, sum_dtype)

    body = Expr(
        "mul", (wide(load(0, order(a), dtype)), wide(load(1, order(b), dtype))), None, sum_dtype
    )
    out_dtype = out_dtype or dtype
    slots = [Slot(dtype, batch * m * k, "in"), Slot(dtype, batch * k * n, "in")]
    slots.append(Slot(out_dtype, batch * m * n, "out"))
    space = (axes["z"], axes["m"], axes["n"])
    place = order(out)
    computes = [Compute(space, (axes["k"],), "sum", body, sum_dtype)]
    value = Expr("ref", (), 0, sum_dtype)
    if epilogue == "bias_relu":
        slots.append(Slot(dtype, n, "in"))
        bias = wide(load(3, axis_index(axes["n"]), dtype))
        value = Expr("add", (value, bias), None, sum_dtype)
        zero = Expr("const", (), 0.0, sum_dtype)
        value = Expr("maximum", (value, zero), None, sum_dtype)
    value = value if out_dtype is sum_dtype else Expr("cast", (value,), None, out_dtype)
    computes.append(Compute(space, (), None, value, out_dtype, (2, place)))
    name = f"matmul_{m}_{n}_{k}_{dtype.name}_{a}_{b}_{out}_{batch}_{epilogue or 'plain'}"
    return Kernel(name, "contract", tuple(slots), (), (Part(space, tuple(computes)),))


def source_of(tile_kernel: TileKernel, target=H200) -> tuple[str, int]:
    program = verify_program(linearize(verify_tiles(tile_kernel), target))
    return render(program), program.shared_bytes


def to_raw(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Contents of a buffer of its own: what is written to it is not written to the values."""
    return np.array(to_bits(values, dtype), order="C")


def from_raw(raw: np.ndarray, dtype: DType) -> np.ndarray:
    return from_bits(raw, dtype)


def aligned(raw: np.ndarray) -> np.ndarray:
    """Copy to memory aligned as a device allocation."""
    room = np.empty(raw.nbytes + 512, np.uint8)
    start = -room.ctypes.data % 256
    copy = room[start : start + raw.nbytes].view(raw.dtype)
    copy[:] = raw.ravel()
    return copy


def spaces_of(tile_kernel: TileKernel) -> list[tuple[int, bool]]:
    """List the workspaces of a kernel: those of parts, and the cells of what is ahead of each.

    Those that are zero between launches come last.
    """
    parts = tile_kernel.parts
    found = [w for p in parts for w in (*p.workspaces * p.count, *[CELLS] * len(p.ahead))]
    return sorted(found, key=lambda each: each[1])


def call_text(tile_kernel: TileKernel, shared: int, dialect: Dialect = CUDA_C) -> str:
    """Host function that runs all blocks of a kernel; arguments in the order of the signature."""
    kernel = tile_kernel.kernel
    name = kernel.name
    slots, count = len(kernel.slots), len(spaces_of(tile_kernel))
    names = [type_name(s.dtype, 1, dialect) for s in kernel.slots]
    args = [f"({name}*)given[{n}]" for n, name in enumerate(names)]
    args += [f"(unsigned char*)given[{slots + n}]" for n in range(count)]
    names = [type_name(d, 1, dialect) for d in kernel.scalars]
    args += [f"*({name}*)given[{slots + count + n}]" for n, name in enumerate(names)]
    return (
        f"static void body_{name}() {{ {name}({', '.join(args)}); }}\n"
        f'extern "C" void run_{name}(void** p, int blocks, int threads, int is_reversed) {{\n'
        f"  given = p;\n  run_grid(body_{name}, blocks, threads, {shared}, is_reversed);\n}}\n"
    )


@cache
def shim_folder() -> Path:
    """Temporary folder with the shim: its precompiled header, and what all kernels share."""
    folder = Path(tempfile.mkdtemp(prefix="cuda_shim_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    header = folder / "cuda_shim.h"
    shutil.copy(HERE / "cuda_shim.h", header)
    shutil.copy(HERE / "opencl_shim.h", folder / "opencl_shim.h")
    command = [*HOST_COMPILER, "-O2", "-x", "c++", str(header), "-c", "-DCUDA_SHIM_RUNTIME"]
    subprocess.run([*command, "-o", str(folder / "runtime.o")], check=True)
    command = [*HOST_COMPILER, "-x", "c++-header", str(header), "-o", f"{header}.gch"]
    subprocess.run(command, check=True)
    return folder


def compile_host(tile_kernels: list[TileKernel]) -> ctypes.CDLL:
    """Compile several kernels as one host library."""
    text = ""
    for tile_kernel in tile_kernels:
        source, shared = source_of(tile_kernel)
        text += source + call_text(tile_kernel, shared)
    return compile_library(text)


def compile_opencl(tile_kernels: list[TileKernel], target: Target) -> ctypes.CDLL:
    """Compile several kernels in OpenCL C as one host library, each in a namespace of its own."""
    text = '#include "cuda_shim.h"\n#include "opencl_shim.h"\n'
    for number, tile_kernel in enumerate(tile_kernels):
        program = verify_program(linearize(verify_tiles(tile_kernel), target))
        source = opencl.render(program).replace("__local uchar shared[", "static uchar shared[")
        call = call_text(tile_kernel, program.shared_bytes, opencl.OPENCL_C)
        text += f"namespace kernel{number} {{\n{source}{call}}}\n"
    return compile_library(text)


def compile_library(text: str) -> ctypes.CDLL:
    """Compile kernels, and what runs them, for this machine."""
    stem = hashlib.sha256(text.encode()).hexdigest()[:12]
    path, library = shim_folder() / f"{stem}.cpp", shim_folder() / f"{stem}.so"
    path.write_text(text)
    runtime = shim_folder() / "runtime.o"
    command = [*HOST_COMPILER, "-shared", f"-I{shim_folder()}", str(path), str(runtime)]
    command += ["-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def run_host(library, tile_kernel: TileKernel, inputs: dict, scalars=(), is_reversed=False):
    """Run one compiled kernel; give the contents of every slot that is written."""
    kernel = tile_kernel.kernel
    buffers = []
    for number, slot in enumerate(kernel.slots):
        if number in inputs:
            buffers.append(aligned(to_raw(inputs[number], slot.dtype)))
        else:
            raw = np.full(slot.size * slot.dtype.itemsize, 0xFF, np.uint8)
            buffers.append(aligned(raw.view(slot.dtype.storage)))
    spaces = spaces_of(tile_kernel)
    buffers += [aligned(np.full(n, 0 if z else 0xFF, np.uint8)) for n, z in spaces]
    buffers += [np.array([s], d.numpy) for s, d in zip(scalars, kernel.scalars, strict=True)]
    pointers = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))
    blocks = sum(part.blocks for part in tile_kernel.parts)
    function = getattr(library, f"run_{kernel.name}")
    function(pointers, blocks, tile_kernel.threads, int(is_reversed))
    for (_, is_zeroed), buffer in zip(spaces, buffers[len(kernel.slots) :], strict=False):
        assert not is_zeroed or not buffer.any(), "a counter was not left zero"
    return {n: from_raw(buffers[n], s.dtype) for n, s in enumerate(kernel.slots) if s.role != "in"}


def compile_cuda(source: str, arch: str) -> tuple[bytes, str]:
    """Compile with NVRTC; give the cubin and the compiler's log."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    options = [o.encode() for o in (f"--gpu-architecture={arch}", *OPTIONS[:2])]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1] + 1)  # never the shared bytes of length 1
    nvrtc.nvrtcGetProgramLog(program, log)
    text = log.decode(errors="replace")
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, f"{text}\n{source}"
    cubin = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin, text


def to_ptx(source: str, arch: str) -> str:
    """Translate with NVRTC's first half."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    options = [o.encode() for o in (f"--gpu-architecture={arch}", *OPTIONS[::2])]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, source
    text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, text)
    return text.decode()


def disassemble(cubin, folder):
    """SASS text, or skip where the disassembler is not installed."""
    site = sysconfig.get_paths()["purelib"]
    tools = glob.glob(f"{site}/nvidia/**/nvdisasm", recursive=True)
    if not tools:
        pytest.skip("needs the nvidia-cuda-nvdisasm package")
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    done = subprocess.run([tools[0], "-c", str(path)], capture_output=True, text=True, check=True)
    return done.stdout
