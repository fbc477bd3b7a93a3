"""LLVM through llvmlite: IR text -> optimised object file -> loaded code.

Objects are plain bytes that depend on nothing of this process, so they can be cached on disk. Most
are laid out for memory (images.py). The others are loaded by ORC, where every object is a library
of its own and symbol names need not differ.
llvmlite holds a lock of its own around every call, because its modules share one context. Each of
ours has its own, and LLVM lets threads work on different contexts at the same time: the two calls
that take long, the passes and the emission of code, take no lock.
"""

import ctypes
import platform
import re
import threading
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import NewPassManager

from picograd.code import (
    FIRST_WORK,
    MANY_KERNELS,
    SMALL_WORK,
    SOURCE_OF_WORK,
    WARM_WORK,
    WORK_OF_SOURCE,
    WORK_OF_TILES,
    Code,
)
from picograd.runtime.compiler import Host
from picograd.runtime.images import image_of

LEVEL = 2  # O3 costs as much and gains nothing on generated code (measured)
VARIANTS = re.compile("^@llvm.compiler.used.*$", re.M)  # keeps functions for the vectoriser
LIBRARY_NUMBERS = count()
# LLVM's JIT remembers 8 KB of every library it ever had, and takes 110 KB and 1.4 ms itself
# (measured): one that has linked this many is left to its libraries and goes with the last.
LIBRARIES_A_JIT = 64
SPARE: "defaultdict[tuple[Host, int], list[Any]]" = defaultdict(list)  # see `spare_machine`
# LLVM rewrites the addresses of loops for half of the time that emission takes. x86 adds a base, a
# scaled index and a constant in every access anyway: kernels run as fast without (measured).
HAS_ADDRESSES = platform.machine() in ("x86_64", "AMD64") and llvm.llvm_version_info[0] <= 22
OPEN: set[int] = set()  # jobs of ours that LLVM works on
OPEN_LOCK = threading.Lock()
# AMD's processors take longer to read or write elements that lie apart by one instruction than one
# by one, 2 to 10 times (measured); LLVM's estimate is the other way round.
ONE_BY_ONE = "+prefer-no-gather,+prefer-no-scatter"


def host() -> Host:
    """Describe this machine's processor."""
    return host_of(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def host_of(cpu: str, features: str) -> Host:
    """Describe a processor by its name and features, with what LLVM does not know of it."""
    is_amd = cpu.startswith("znver")
    return Host(cpu, f"{features},{ONE_BY_ONE}" if is_amd else features)


def compiler_version() -> str:
    """Name the compiler and its options: part of the key of cached objects."""
    limits = SMALL_WORK, WARM_WORK, FIRST_WORK, SOURCE_OF_WORK
    many = MANY_KERNELS, WORK_OF_SOURCE, WORK_OF_TILES
    addresses = "kept" if HAS_ADDRESSES else "rewritten"
    levels = f"O{LEVEL}, O0 to {limits}, {many}, addresses {addresses}"
    return f"llvmlite {llvmlite.__version__} LLVM {llvm.llvm_version_info} {levels}"


def description() -> tuple[Host, str]:
    """Describe this machine's processor and the compiler."""
    return host(), compiler_version()


def target_machine(machine: Host, level: int = LEVEL) -> Any:
    """Make a new TargetMachine. The linker owns the one it gets: never share it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # The large code model ("jitdefault") lets generated code call libc from anywhere in memory;
    # reloc="pic" has produced wrong code from the second module on.
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=level,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )


def spare_machine(machine: Host, level: int) -> Any:
    """Take a TargetMachine that no translation uses now: making one takes 0.13 ms."""
    try:
        return SPARE[machine, level].pop()
    except LookupError:
        return target_machine(machine, level)


def without_lock(name: str) -> Callable[..., Any]:
    """Find a function of LLVM's that may run beside others, on contexts of their own."""
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)  # an llvmlite that wraps it otherwise: with the lock


def keep_addresses(job: int, is_open: bool) -> None:
    """Have LLVM leave the addresses of loops as they are while any job of ours is open.

    Only then: this is a setting of the process, in which another library may compile with LLVM.
    """
    with OPEN_LOCK:
        had_any = bool(OPEN)
        (OPEN.add if is_open else OPEN.discard)(job)
        if HAS_ADDRESSES and bool(OPEN) != had_any:
            llvm.set_option("picograd", f"-disable-lsr={str(not had_any).lower()}")


def few_passes() -> Any:
    """Make the passes of a small kernel: no memory for variables, no branches on what is known.

    And no functions that nothing calls, before all else.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_sccp_pass()
    passes.add_simplify_cfg_pass()
    return passes


class Job:
    """This class is one kernel on its way through LLVM, in a context of its own.

    `run` may be called on any thread and is nothing but native calls: a thread that comes back to
    Python waits up to 5 ms for another one to let it in. RuntimeError if the IR is not valid.
    """

    def __init__(self, code: Code, machine: Host, is_quick: bool = False) -> None:
        self.kind, self.memory = (machine, 0 if is_quick else LEVEL), None
        self.machine = spare_machine(*self.kind)
        self.context, self.problem = llvm.create_context(), ffi.OutputString()
        # It goes in `close`. A job that an exception ends (Ctrl-C) may be part of a cycle, of which
        # Python's collector frees the context before the module in it: that is a crash.
        self.context._owned = True
        source = VARIANTS.sub("", code.source) if is_quick else code.source
        self.module = llvm.parse_assembly(source, self.context)
        self.module.triple = self.machine.triple
        self.module.data_layout = str(self.machine.target_data)
        self.module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
        options.loop_vectorization = True
        options.slp_vectorization = True
        self.builder = llvm.create_pass_builder(self.machine, options)
        self.managers = [few_passes() if is_quick else self.builder.getModulePassManager()]
        if "alwaysinline" in code.source:  # vector variants, called by what was vectorised
            last = llvm.create_new_module_pass_manager()
            last.add_always_inliner_pass()
            self.managers.append(last)
        keep_addresses(id(self), True)

    def optimize(self) -> None:
        """Run the passes over the module."""
        run_passes = without_lock("LLVMPY_RunNewModulePassManager")
        for passes in self.managers:
            run_passes(passes, self.module, self.builder)

    def run(self) -> None:
        """Run the passes, and write machine code."""
        self.optimize()
        emit = without_lock("LLVMPY_TargetMachineEmitToMemory")
        self.memory = emit(self.machine, self.module, 1, self.problem)

    def result(self) -> bytes:
        """Give the object, once `run` is done, laid out if that may be, and let the rest go."""
        if not self.memory:
            raise RuntimeError(str(self.problem))
        memory, self.memory = self.memory, None
        lib = ffi.lib
        try:
            size = lib.LLVMPY_GetBufferSize(memory)
            return image_of(ctypes.string_at(lib.LLVMPY_GetBufferStart(memory), size))
        finally:
            lib.LLVMPY_DisposeMemoryBuffer(memory)
            self.close()

    def assembly(self) -> str:
        """Give assembly text."""
        self.optimize()
        text = str(self.machine.emit_assembly(self.module))
        self.close()
        return text

    def close(self) -> None:
        """Free the pass managers, and leave the machine to the next translation.

        In llvmlite up to 0.50 the class inherits the `_dispose` that does nothing first: 110 KB
        would be lost with every kernel.
        """
        for passes in self.managers:
            if type(passes)._dispose is ObjectRef._dispose:
                NewPassManager._dispose(passes)
                passes.detach()
            else:
                passes.close()
        self.managers = []
        keep_addresses(id(self), False)
        self.module.close()
        self.context._owned = False
        if self.machine is not None:
            SPARE[self.kind].append(self.machine)
            self.machine = None


class Linker:
    """This class loads objects that are not laid out, for one processor."""

    def __init__(self, machine: Host) -> None:
        self.host = machine
        self.jit: Any = None
        self.linked: int = 0  # libraries of it so far

    def link(self, binary: bytes, symbols: tuple[str, ...]) -> Any:
        """Load an object; RuntimeError if it is damaged or lacks a symbol."""
        library = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process()
        for symbol in symbols:
            library = library.export_symbol(symbol)
        return library.link(self.find_jit(), f"picograd{next(LIBRARY_NUMBERS)}")

    def find_jit(self) -> Any:
        """Give what takes the next library; a full one lives on in its libraries."""
        jit = self.jit
        if jit is None or self.linked >= LIBRARIES_A_JIT:
            jit = self.jit = llvm.create_lljit_compiler(target_machine(self.host))
            self.linked = 0
        self.linked += 1  # a library too many when threads meet here: no harm
        return jit
