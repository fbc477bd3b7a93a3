"""Target: the facts about a machine that code generation may use."""

from picograd.late_methods import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """What kernels are generated for; part of every cache key.

    `threads` is the number of CPU workers (1 on CUDA, where the grid is the parallelism).
    `vector_bytes` is the widest load: 64 for AVX-512, 16 on CUDA. `features` separates machines
    whose generated code may differ (CPU feature string, or the compute capability).
    """

    language: str  # "llvm", "cuda" or "opencl"
    arch: str  # "znver4", "sm_90a"
    vector_bytes: int
    threads: int = 1
    registers: int = 32  # vector registers (CPU)
    shared_bytes: int = 0  # shared memory a block may use (CUDA)
    multiprocessors: int = 1
    tensor_cores: bool = False
    features: str = ""
    tf32: bool = False  # tensor cores may multiply float32, with 10 bits of each mantissa

    @property
    def has_blocks(self) -> bool:
        """Tell whether a task is a block of threads with shared memory and warp operations.

        Else it is one thread with vectors, which runs next to few others.
        """
        return self.shared_bytes > 0

    @property
    def packs_operands(self) -> bool:
        """Tell whether kernels pack the operands of a product, element by element, as a CPU's do.

        A GPU's copy them as they lie in memory.
        """
        return not self.has_blocks

    @property
    def multiplies_tiles(self) -> bool:
        """Tell whether a CPU multiplies tiles of bfloat16, 16 x 32 by 32 x 16, and may do so."""
        return "+amx-bf16" in self.features.split(",")

    @property
    def has_async(self) -> bool:
        """Tell whether threads copy to shared memory without waiting, elements of 4 bytes too."""
        return self.arch.startswith("sm_")

    @property
    def has_waiting_blocks(self) -> bool:
        """Tell whether a block may wait for what others of its launch do: parts ahead of others."""
        return self.has_async

    @property
    def has_clusters(self) -> bool:
        """Tell whether some blocks run side by side and read the shared memory of one another."""
        return self.copies_boxes

    @property
    def copies_boxes(self) -> bool:
        """Tell whether an engine copies boxes of arrays to where tensor cores multiply them."""
        return self.arch == "sm_90a"


def cuda_target(arch: str, multiprocessors: int = 132, shared_bytes: int = 227 * 1024) -> Target:
    """Describe an NVIDIA GPU; the defaults are an H100's or H200's (CUDA C guide, table 27)."""
    capability = int("".join(c for c in arch if c.isdigit()))
    return Target("cuda", arch, 16, 1, 0, shared_bytes, multiprocessors, capability >= 80)


def opencl_target(name: str = "any", units: int = 64, shared_bytes: int = 64 << 10) -> Target:
    """Describe a device of OpenCL: work-groups with local memory, no tensor cores."""
    return Target("opencl", name, 16, 1, 0, shared_bytes, units)


SERIAL = Target("", "", 0)  # one thread: for what is computed where no target is chosen


def is_host(device: str) -> bool:
    """Tell whether the memory of a device, by its name, is the host's: NumPy reads it in place."""
    return device == "cpu"


def is_gpu(device: str) -> bool:
    """Tell whether a device, by its name, is an NVIDIA GPU: its memory and streams are CUDA's."""
    return device.startswith("cuda")
