"""LLVM through llvmlite: IR text -> optimised object file -> loaded code.

Objects are plain bytes that depend on nothing of this process, so they can be cached on disk. Most
are laid out for memory (images.py). The others are loaded by ORC, where every object is a library
of its own and symbol names need not differ.
llvmlite holds a lock of its own around every call, because its modules share one context. Each of
ours has its own, and LLVM lets threads work on different contexts at the same time: what takes long
takes no lock, and is one call of machine code (`CHAIN`). A thread that came back to Python between
LLVM's steps would wait up to 5 ms each time, until another one lets it in.
"""

import ctypes
import platform
import re
import threading
from collections import defaultdict
from functools import cache
from itertools import count
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import NewPassManager

from picograd.code import (
    ALL,
    FIRST_WORK,
    MANY_KERNELS,
    MIDDLE,
    SMALL_WORK,
    SOURCE_OF_WORK,
    WARM_WORK,
    WORK_OF_MIDDLE,
    WORK_OF_SOURCE,
    WORK_OF_TILES,
    Code,
)
from picograd.runtime.compiler import Host, refused
from picograd.runtime.images import image_of

# What is chosen lane by lane is not put together in vectors: of <4 x i1>, one lane of which is
# replaced, LLVM 22 loses the others where they are read as numbers, too (AVX-512): it reads a mask
# register that nothing set. Loops over vectors have no such lanes.
CHOICE = " select "
LEVEL = ALL  # O3 costs as much and gains nothing on generated code (measured)
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

# From text to an object, in one call; what it reads and writes are the `Words` of a job.
CHAIN_CALLS = (
    "LLVMPY_ParseAssembly",
    "LLVMPY_VerifyModule",
    "LLVMPY_RunNewModulePassManager",
    "LLVMPY_TargetMachineEmitToMemory",
)
CHAIN = """
declare ptr @LLVMPY_ParseAssembly(ptr, ptr, ptr)
declare zeroext i1 @LLVMPY_VerifyModule(ptr, ptr)
declare i32 @LLVMPY_RunNewModulePassManager(ptr, ptr, ptr)
declare ptr @LLVMPY_TargetMachineEmitToMemory(ptr, ptr, i32, ptr)

define void @picograd_chain(ptr %job) {
  %places = getelementptr ptr, ptr %job, i64 1
  %context = load ptr, ptr %job
  %text = load ptr, ptr %places
  %machine.at = getelementptr ptr, ptr %job, i64 2
  %machine = load ptr, ptr %machine.at
  %builder.at = getelementptr ptr, ptr %job, i64 3
  %builder = load ptr, ptr %builder.at
  %first.at = getelementptr ptr, ptr %job, i64 4
  %first = load ptr, ptr %first.at
  %last.at = getelementptr ptr, ptr %job, i64 5
  %last = load ptr, ptr %last.at
  %module.at = getelementptr ptr, ptr %job, i64 6
  %object.at = getelementptr ptr, ptr %job, i64 7
  %message.at = getelementptr ptr, ptr %job, i64 8
  %message = load ptr, ptr %message.at
  %module = call ptr @LLVMPY_ParseAssembly(ptr %context, ptr %text, ptr %message)
  store ptr %module, ptr %module.at
  %is_missing = icmp eq ptr %module, null
  br i1 %is_missing, label %end, label %verify
verify:
  %is_wrong = call zeroext i1 @LLVMPY_VerifyModule(ptr %module, ptr %message)
  br i1 %is_wrong, label %end, label %passes
passes:
  call i32 @LLVMPY_RunNewModulePassManager(ptr %first, ptr %module, ptr %builder)
  %is_done = icmp eq ptr %last, null
  br i1 %is_done, label %emit, label %more
more:
  call i32 @LLVMPY_RunNewModulePassManager(ptr %last, ptr %module, ptr %builder)
  br label %emit
emit:
  %object = call ptr @LLVMPY_TargetMachineEmitToMemory(
    ptr %machine, ptr %module, i32 1, ptr %message)
  store ptr %object, ptr %object.at
  br label %end
end:
  ret void
}
"""


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
    many = MANY_KERNELS, WORK_OF_SOURCE, WORK_OF_TILES, WORK_OF_MIDDLE
    addresses = "kept" if HAS_ADDRESSES else "rewritten"
    levels = f"O{LEVEL}, less to {limits}, {many}, addresses {addresses}"
    return f"llvmlite {llvmlite.__version__} LLVM {llvm.llvm_version_info} {levels}, choices apart"


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


class Words(ctypes.Structure):
    """This class is what `CHAIN` reads of a job, and where it leaves what comes out."""

    _fields_ = (
        ("context", ffi.LLVMContextRef),
        ("text", ctypes.c_char_p),
        ("machine", ffi.LLVMTargetMachineRef),
        ("builder", ffi.LLVMPassBuilderRef),
        ("first", ffi.LLVMModulePassManagerRef),
        ("last", ffi.LLVMModulePassManagerRef),  # may be none
        ("module", ffi.LLVMModuleRef),
        ("memory", ffi.LLVMMemoryBufferRef),
        ("problem", ctypes.POINTER(ctypes.c_char_p)),
    )


@cache
def chain_on(machine: Host) -> Any:
    """Load what takes a job through LLVM."""
    library = llvm.JITLibraryBuilder().add_ir(CHAIN).export_symbol("picograd_chain")
    for name in CHAIN_CALLS:
        function = getattr(ffi.lib, name)
        address = ctypes.cast(getattr(function, "_cfn", function), ctypes.c_void_p).value
        library = library.import_symbol(name, address)
    jit = llvm.create_lljit_compiler(target_machine(machine, 0))  # 4 ms in place of 8
    loaded = library.link(jit, "picograd_chain")
    chain: Any = ctypes.CFUNCTYPE(None, ctypes.POINTER(Words))(loaded["picograd_chain"])
    chain.library = loaded  # of threads that meet here each has its own, for as long
    return chain


@cache
def head_of(machine: Host) -> str:
    """Say which target a text is for; in one line with its first one, so that lines stay."""
    target = target_machine(machine)
    return f'target datalayout = "{target.target_data}" target triple = "{target.triple}" '


def keep_addresses(job: int, is_open: bool) -> None:
    """Have LLVM leave the addresses of loops as they are while any job of ours is open.

    Only then: this is a setting of the process, in which another library may compile with LLVM.
    """
    with OPEN_LOCK:
        had_any = bool(OPEN)
        (OPEN.add if is_open else OPEN.discard)(job)
        if HAS_ADDRESSES and bool(OPEN) != had_any:
            llvm.set_option("picograd", f"-disable-lsr={str(not had_any).lower()}")


def few_passes(is_middle: bool) -> Any:
    """Make the passes of a small kernel: no memory for variables, no branches on what is known.

    And no functions that nothing calls, before all else; middle ones combine instructions, too.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    if is_middle:
        passes.add_instruction_combine_pass()
    passes.add_sccp_pass()
    passes.add_simplify_cfg_pass()
    return passes


class Job:
    """This class is one kernel on its way through LLVM, in a context of its own.

    `run` may be called on any thread and is nothing but a native call.
    """

    def __init__(self, code: Code, machine: Host, passes: int = ALL) -> None:
        self.kind, self.code = (machine, passes), code
        self.chain = chain_on(machine)
        self.machine = spare_machine(*self.kind)
        self.context, self.problem = llvm.create_context(), ffi.OutputString()
        # It goes in `close`. A job that an exception ends (Ctrl-C) may be part of a cycle, of which
        # Python's collector frees the context before the module in it: that is a crash.
        self.context._owned = True
        is_whole = passes == ALL
        source = code.source if is_whole else VARIANTS.sub("", code.source)
        self.text = head_of(machine) + source
        options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
        options.loop_vectorization = True
        options.slp_vectorization = CHOICE not in code.source
        self.builder = llvm.create_pass_builder(self.machine, options)
        pipeline = self.builder.getModulePassManager
        self.managers = [pipeline() if is_whole else few_passes(passes == MIDDLE)]
        if "alwaysinline" in code.source:  # vector variants, called by what was vectorised
            last = llvm.create_new_module_pass_manager()
            last.add_always_inliner_pass()
            self.managers.append(last)
        parts = self.context, self.machine, self.builder, *self.managers
        context, *others = [each._ptr for each in parts]
        self.words = Words(context, self.text.encode(), *others)
        self.words.problem = ctypes.pointer(self.problem._ptr)
        keep_addresses(id(self), True)

    def run(self) -> None:
        """Read the text, run the passes, and write machine code."""
        self.chain(self.words)

    def result(self) -> bytes:
        """Give the object, once `run` is done, laid out if that may be, and let the rest go.

        CompileError if the IR is not valid.
        """
        lib, memory = ffi.lib, self.words.memory
        try:
            if not memory:
                raise refused(self.code, str(self.problem))
            size = lib.LLVMPY_GetBufferSize(memory)
            return image_of(ctypes.string_at(lib.LLVMPY_GetBufferStart(memory), size))
        finally:
            if memory:
                lib.LLVMPY_DisposeMemoryBuffer(memory)
            self.close()

    def assembly(self) -> str:
        """Give assembly text. CompileError if the IR is not valid."""
        try:
            module = llvm.parse_assembly(self.text, self.context)
            module._owned, self.words.module = True, module._ptr  # it goes in `close`
            module.verify()
            for passes in self.managers:
                ffi.lib.LLVMPY_RunNewModulePassManager(passes, module, self.builder)
            return str(self.machine.emit_assembly(module))
        except RuntimeError as error:
            raise refused(self.code, str(error)) from None
        finally:
            self.close()

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
        if self.words.module:
            ffi.lib.LLVMPY_DisposeModule(self.words.module)
            self.words.module = None
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
