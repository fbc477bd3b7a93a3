"""Spelling of the instructions of codegen/program.py in CUDA C: one PTX instruction each.

A qualifier too many costs a memory barrier of the whole GPU in every step of a pipeline: `.release`
on an arrival, or a `fence.proxy.async` that is not limited to `.shared::cta`.
"""

from collections.abc import Callable
from typing import Any

from picograd.codegen.program import K_BYTES, Instr, Mma, Role, Wgmma

HELPERS = """\
struct __align__(64) TensorMap { uint64 words[16]; };
DEVICE bool elect() {
  uint32 is_one;
  asm volatile("{\\n.reg .pred p;\\nelect.sync _|p, 0xffffffff;\\nselp.u32 %0, 1, 0, p;\\n}"
    : "=r"(is_one));
  return is_one;
}
DEVICE void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" :: "l"(&map) : "memory");
}
DEVICE uint32 shared_place(const void* p) { return (uint32)__cvta_generic_to_shared(p); }
DEVICE void barrier_init(uint64* b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
    :: "r"(shared_place(b)), "r"(count) : "memory");
}
DEVICE void barrier_publish() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DEVICE void barrier_expect(uint64* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
    :: "r"(shared_place(b)), "r"(bytes) : "memory");
}
DEVICE void barrier_arrive(uint64* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_place(b)) : "memory");
}
DEVICE void barrier_wait(uint64* b, int parity) {
  asm volatile("{\\n.reg .pred p;\\nWAIT:\\n"
    "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n@p bra DONE;\\nbra WAIT;\\nDONE:\\n}"
    :: "r"(shared_place(b)), "r"(parity) : "memory");
}
DEVICE void store_box_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int pending> DEVICE void store_box_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(pending) : "memory");
}
DEVICE void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE uint64 descriptor(const void* p, int leading) {
  return 0x4000004000000000ull | (uint64)(leading >> 4) << 16 | (shared_place(p) & 0x3ffff) >> 4;
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending> DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory");
}
template <int count> DEVICE void wgmma_done(float (&acc)[count]) {
  #pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+f"(acc[i]) :: "memory");
}
"""

COPY = """\
DEVICE void copy_box(const TensorMap& map, void* to, uint64* barrier, {at}) {{
  asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%0], [%1, {{{numbers}}}], [%2];"
    :: "r"(shared_place(to)), "l"(&map), "r"(shared_place(barrier)), {values} : "memory");
}}
"""

WINDOWS = """\
DEVICE void copy_windows(const TensorMap& map, void* to, uint64* barrier, {at}, {offsets}) {{
  asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col"
    ".mbarrier::complete_tx::bytes [%0], [%1, {{{numbers}}}], [%2], {{{offset_numbers}}};"
    :: "r"(shared_place(to)), "l"(&map), "r"(shared_place(barrier)), {values}, {offset_values}
    : "memory");
}}
"""

COPY_ALL = """\
DEVICE void copy_box_all_{count}(const TensorMap& map, void* to, uint64* barrier, {at}) {{
  asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    ".multicast::cluster [%0], [%1, {{{numbers}}}], [%2], %{mask};"
    :: "r"(shared_place(to)), "l"(&map), "r"(shared_place(barrier)), {values},
    "h"((unsigned short)((1 << {count}) - 1)) : "memory");
}}
"""

CLUSTER = """\
template <int blocks> DEVICE void barrier_arrive_all(uint64* b) {
  #pragma unroll
  for (int i = 0; i < blocks; i++)
    asm volatile("{\\n.reg .b32 at;\\nmapa.shared::cluster.u32 at, %0, %1;\\n"
      "mbarrier.arrive.shared::cluster.b64 _, [at];\\n}"
      :: "r"(shared_place(b)), "r"(i) : "memory");
}
DEVICE void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\\nbarrier.cluster.wait.aligned;"
    ::: "memory");
}
"""

STORE = """\
DEVICE void store_box(const TensorMap& map, const void* from, {at}) {{
  asm volatile("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group "
    "[%1, {{{numbers}}}], [%0];"
    :: "r"(shared_place(from)), "l"(&map), {values} : "memory");
  store_box_commit();
}}
"""

WGMMA = """\
template <int r, int count> DEVICE void {name}(float (&d)[count], uint64 a, uint64 b) {{
  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, {adds}, 0;\\n"
    "wgmma.mma_async.sync.aligned.{shape} "
    "{{{registers}}}, %{size}, %{after}, {flags};\\n}}"
    : {outputs} : "l"(a), "l"(b));
}}
"""
PACKED = """\
template <int r, int first, int count, int size>
DEVICE void {name}(float (&d)[count], const uint32 (&a)[size], uint64 b) {{
  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, {adds}, 0;\\n"
    "wgmma.mma_async.sync.aligned.{shape} "
    "{{{registers}}}, {{{operands}}}, %{b}, p, {flags};\\n}}"
    : {outputs} : {inputs}, "l"(b));
}}
"""

KEEP = """\
// ptxas of CUDA 13.0 puts two left operands in the same registers, though one is read again in the
// next round, unless it is changed in between: by a number that is 0, which it cannot know.
template <int count> DEVICE void wgmma_keep(uint32 (&packed)[count], int small) {
  #pragma unroll
  for (int i = 0; i < count; i++)
    asm volatile("xor.b32 %0, %0, %1;" : "+r"(packed[i]) : "r"(small >> 8));
}
"""
PACK = """\
template <int count, int size>
DEVICE void wgmma_pack_{kind}(uint32 (&to)[count], const float (&from)[size]) {{
  #pragma unroll
  for (int i = 0; i < count; i++) {{
    asm volatile("cvt.rn.{kind}x2.f32 %0, %1, %2;"
      : "=r"(to[i]) : "f"(from[2 * i + 1]), "f"(from[2 * i]));
  }}
}}
"""
PACK_TF32 = """\
template <int count>
DEVICE void wgmma_pack_tf32(uint32 (&to)[count], const float (&from)[count]) {
  #pragma unroll
  for (int i = 0; i < count; i++)
    asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(to[i]) : "f"(from[i]));
}
"""
MMA = """\
// A lane of an accumulator has columns 2t and 2t + 1 where one of a left operand has t and t + 4:
// the sum is the same if rows of the right operand are taken in that order, too.
DEVICE void mma_tf32(float* d, const uint32* a, float even, float odd) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
    : "r"(a[0]), "r"(a[2]), "r"(a[1]), "r"(a[3]),
      "r"(__float_as_uint(even)), "r"(__float_as_uint(odd)));
}
template <int n, int depth, int rows, int count, int size>
DEVICE void mma_packed_kn(float (&d)[count], const uint32 (&a)[size], const float* b) {
  const int t = threadIdx.x & 3, near = threadIdx.x >> 2 & 3, far = threadIdx.x >> 4 & 1;
  const float* even = b + t * 64 + far * 4 + near;
  const float* odd = b + t * 64 + 32 + (far ^ 1) * 4 + near;
  #pragma unroll
  for (int k = 0; k < depth / 8; k++) {
    #pragma unroll
    for (int j = 0; j < n / 8; j++) {
      const int at = j / 4 * rows * 32 + k * 256 + ((j % 4 ^ t) << 3);
      mma_tf32(d + 4 * j, a + 4 * k, even[at], odd[at]);
    }
  }
}
template <int n, int depth, int rows, int count, int size>
DEVICE void mma_packed_nk(float (&d)[count], const uint32 (&a)[size], const float* b) {
  const int t = threadIdx.x & 3, g = threadIdx.x >> 2 & 7;
  const float* own = b + g * 32 + (t & 1) * 2;
  #pragma unroll
  for (int k = 0; k < depth / 8; k++) {
    const int at = k / 4 * rows * 32 + ((k % 4 * 2 + (t >> 1) ^ g) << 2);
    #pragma unroll
    for (int j = 0; j < n / 8; j++) {
      const float* pair = own + at + j * 256;
      mma_tf32(d + 4 * j, a + 4 * k, pair[0], pair[1]);
    }
  }
}
"""
FLAGS = """\
DEVICE void flag_raise(int* flag) {
  asm volatile("st.release.gpu.global.b32 [%0], 1;" :: "l"(flag) : "memory");
}
DEVICE void flag_wait(int* flag) {
  int is_raised;
  do {
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(is_raised) : "l"(flag) : "memory");
  } while (!is_raised);
  asm volatile("st.relaxed.gpu.global.b32 [%0], 0;" :: "l"(flag) : "memory");
}
"""
CLAIMS = """\
#ifndef CUDA_SHIM
DEVICE int claim(int* cells, int* shared, int before) {
  __syncthreads();
  if (threadIdx.x == 0) {
    if (before >= 0) {
      __threadfence();
      atomicAdd(cells + 1, 1);
    }
    *shared = atomicAdd(cells, 1);
  }
  __syncthreads();
  return *shared;
}
DEVICE void claims_wait(int* cells, int count, int blocks) {
  if (threadIdx.x == 0) {
    for (int done = -1; done < count;)
      asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(done) : "l"(cells + 1) : "memory");
    if (atomicAdd(cells + 2, 1) == blocks - 1) cells[0] = cells[1] = cells[2] = 0;
    __threadfence();
  }
  __syncthreads();
}
#endif
"""
TYPES = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "tf32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}


def box_text(template: str, rank: int, first: int, count: int = 1) -> str:
    """Write the function that copies boxes of so many dimensions, to `count` blocks."""
    return template.format(**place_text(rank, first), count=count, mask=first + rank)


def place_text(rank: int, first: int) -> dict[str, Any]:
    """Write the coordinates of a box: as parameters, and as operands from a number on."""
    names = [f"c{d}" for d in range(rank)]
    return dict(
        rank=rank,
        at=", ".join(f"int {name}" for name in names),
        numbers=", ".join(f"%{first + d}" for d in range(rank)),
        values=", ".join(f'"r"({name})' for name in names),
    )


def windows_text(rank: int) -> str:
    """Write the function that copies boxes of windows of an array of so many dimensions."""
    offsets = [f"o{d}" for d in range(rank - 2)]
    return WINDOWS.format(
        **place_text(rank, 3),
        offsets=", ".join(f"int {name}" for name in offsets),
        offset_numbers=", ".join(f"%{3 + rank + d}" for d in range(rank - 2)),
        offset_values=", ".join(f'"h"((unsigned short){name})' for name in offsets),
    )


def product_text(spec: Wgmma) -> dict[str, Any]:
    """Write what products of both kinds say: what they are, and the registers of their sums."""
    kinds, size = ".".join(TYPES[dtype.name] for dtype in spec.dtypes), spec.n // 2
    return dict(
        name=wgmma_name(spec),
        adds=int(not spec.is_first),
        shape=f"m64n{spec.n}k{K_BYTES // spec.dtype.itemsize}.f32.{kinds}",
        registers=", ".join(f"%{i}" for i in range(size)),
        outputs=", ".join(f'"+f"(d[r + {i}])' for i in range(size)),
    )


def wgmma_text(spec: Wgmma) -> str:
    """Write the function of one product."""
    size = spec.n // 2
    flags = ["p", "1", "1"]  # TF32 and 8 bits are read along K, so that nothing says along what
    if spec.dtype.bits == 16:
        flags += [str(int(not spec.a_is_k_major)), str(int(not spec.b_is_k_major))]
    return WGMMA.format(**product_text(spec), size=size, after=size + 1, flags=", ".join(flags))


def packed_text(spec: Wgmma) -> str:
    """Write the function of one product whose left operand is in registers."""
    size = spec.n // 2
    flags = 1, 1, int(not spec.b_is_k_major)
    return PACKED.format(
        **product_text(spec),
        operands=", ".join(f"%{size + i}" for i in range(4)),
        b=size + 4,
        flags=", ".join(map(str, flags)),
        inputs=", ".join(f'"r"(a[first + {i}])' for i in range(4)),
    )


def wgmma_name(spec: Wgmma) -> str:
    """Name the function of one product."""
    if spec.has_packed:
        which = "set" if spec.is_first else "add"
        return f"wgmma_{which}_{spec.dtype.name}_n{spec.n}_{int(not spec.b_is_k_major)}"
    majors = f"{int(not spec.a_is_k_major)}{int(not spec.b_is_k_major)}"
    which = "_set" if spec.is_first else ""
    names = "_".join(dict.fromkeys(dtype.name for dtype in spec.dtypes))
    return f"wgmma_{names}_n{spec.n}_{majors}{which}"


TEXTS = {
    "barrier_arrive_all": CLUSTER, "cluster_barrier": CLUSTER, "flag_raise": FLAGS,
    "flag_wait": FLAGS, "wgmma_keep": KEEP, "mma_packed": MMA,
}  # fmt: skip


def helpers(instr: Instr) -> tuple[str, ...]:
    """List the texts that an instruction needs."""
    if instr.op not in STATEMENTS and instr.op not in VALUES:
        return ()
    if instr.op == "copy_box" and instr.arg:
        return HELPERS, windows_text(len(instr.args) - 5 - instr.arg)
    if instr.op == "copy_box":
        return HELPERS, box_text(COPY, len(instr.args) - 5, 3)
    if instr.op == "copy_box_all":
        return HELPERS, box_text(COPY_ALL, len(instr.args) - 6, 3, instr.arg[0])
    if instr.op == "store_box":
        return HELPERS, box_text(STORE, len(instr.args) - 3, 2)
    if instr.op in ("claims", "claims_wait"):
        return (CLAIMS,)
    if instr.op in TEXTS:
        return HELPERS, TEXTS[instr.op]
    if instr.op == "wgmma_pack" and instr.arg.bits == 32:
        return HELPERS, PACK_TF32
    if instr.op == "wgmma_pack":
        return HELPERS, PACK.format(kind=TYPES[instr.arg.name])
    if instr.op == "wgmma":
        spec: Wgmma = instr.arg
        return HELPERS, packed_text(spec) if spec.has_packed else wgmma_text(spec)
    return (HELPERS,)


def role_text(name: str, args: list[str], instr: Instr) -> list[str]:
    """Begin a role: a branch that whole warps take or do not take, or whole warpgroups."""
    role: Role = instr.arg
    size = role.threads * role.teams
    name, shift = ("group", 7) if (role.first | size) % 128 == 0 else ("warp", 5)
    first, last = role.first >> shift, (role.first + size) >> shift
    number = f"__shfl_sync(~0u, threadIdx.x >> {shift}, 0)"
    lines = [
        f"{'else ' if role.follows else ''}"
        f"if (const int {name} = {number}; {name} >= {first} && {name} < {last}) {{"
    ]
    if role.registers:
        way = "dec" if role.first == 0 else "inc"
        text = f'asm volatile("setmaxnreg.{way}.sync.aligned.u32 {role.registers};");'
        lines.append(f"  {text}")
    return lines


def wgmma_call(name: str, args: list[str], instr: Instr) -> list[str]:
    """Begin one product: offsets in descriptors count 16 bytes."""
    spec: Wgmma = instr.arg
    acc, a, b = args
    if spec.has_packed:
        places = f"{spec.register}, {spec.a_offset}"
        return [f"{wgmma_name(spec)}<{places}>({acc}, {a}, {b} + {spec.b_offset >> 4});"]
    places = f"{a} + {spec.a_offset >> 4}, {b} + {spec.b_offset >> 4}"
    return [f"{wgmma_name(spec)}<{spec.register}>({acc}, {places});"]


def mma_call(name: str, args: list[str], instr: Instr) -> list[str]:
    """Multiply at once."""
    spec: Mma = instr.arg
    acc, packed, shared, place = args
    order = "nk" if spec.b_is_nk else "kn"
    lines = []
    if spec.is_first:
        lines = ["#pragma unroll", f"for (int i = 0; i < {spec.n // 2}; i++) {acc}[i] = 0.0f;"]
    sizes = f"{spec.n}, {spec.depth}, {spec.rows}"
    return [*lines, f"mma_packed_{order}<{sizes}>({acc}, {packed}, {shared} + {place});"]


def copy_call(name: str, args: list[str], instr: Instr) -> list[str]:
    """Begin to copy a box."""
    function = "copy_windows" if instr.arg else "copy_box"
    to, barrier, at = f"{args[1]} + {args[2]}", f"{args[3]} + {args[4]}", ", ".join(args[5:])
    return [f"{function}({args[0]}, {to}, {barrier}, {at});"]


def copy_all_call(name: str, args: list[str], instr: Instr) -> list[str]:
    """Begin to copy the box of this block to all of a cluster."""
    count, rows, span = instr.arg
    tensor, shared, place, barriers, number, rank, near, far, *rest = args
    to = f"{shared} + {place} + {rank} * {rows * span}"
    at = ", ".join((near, f"{far} + {rank} * {rows}", *rest))
    return [f"copy_box_all_{count}({tensor}, {to}, {barriers} + {number}, {at});"]


Statement = Callable[[str, list[str], Instr], list[str]]
CALLS = (
    "barrier_publish", "cluster_barrier", "async_fence", "prefetch_map",
    "wgmma_keep", "wgmma_fence", "wgmma_commit",
)  # fmt: skip
STATEMENTS: dict[str, Statement] = {
    "role": role_text,
    "claims": lambda name, args, instr: [
        f"for (int {name} = -1; ({name} = claim({', '.join(args)}, {name})) < {instr.arg};) {{"
    ],
    "claims_wait": lambda name, args, instr: [
        f"claims_wait({args[0]}, {', '.join(map(str, instr.arg))});"
    ],
    **dict.fromkeys(CALLS, lambda name, args, instr: [f"{instr.op}({', '.join(args)});"]),
    **dict.fromkeys(
        ("barrier_init", "barrier_expect"),
        lambda name, args, instr: [f"{instr.op}({args[0]} + {args[1]}, {instr.arg});"],
    ),
    "barrier_arrive": lambda name, args, instr: [f"barrier_arrive({args[0]} + {args[1]});"],
    "barrier_arrive_all": lambda name, args, instr: [
        f"barrier_arrive_all<{instr.arg}>({args[0]} + {args[1]});"
    ],
    "barrier_wait": lambda name, args, instr: [f"barrier_wait({args[0]} + {args[1]}, {args[2]});"],
    "flag_raise": lambda name, args, instr: [f"flag_raise({args[0]} + {args[1]});"],
    "flag_wait": lambda name, args, instr: [f"flag_wait({args[0]} + {args[1]});"],
    "copy_box": copy_call,
    "copy_box_all": copy_all_call,
    "unfilled": lambda name, args, instr: [],
    "store_box": lambda name, args, instr: [
        f"store_box({args[0]}, {args[1]} + {args[2]}, {', '.join(args[3:])});"
    ],
    "store_box_wait": lambda name, args, instr: [f"store_box_wait<{instr.arg}>();"],
    "wgmma": wgmma_call,
    "mma_packed": mma_call,
    "wgmma_pack": lambda name, args, instr: [
        f"wgmma_pack_{TYPES[instr.arg.name]}({args[0]}, {args[1]});"
    ],
    "wgmma_wait": lambda name, args, instr: [
        f"wgmma_wait<{instr.arg}>();",
        *(f"wgmma_done({acc});" for acc in args),
    ],
}
VALUES: dict[str, Callable[[list[str], Instr], str]] = {
    "elect": lambda args, instr: "elect()",
    "uniform": lambda args, instr: f"__shfl_sync(~0u, {args[0]}, 0)",
    "descriptor": lambda args, instr: f"descriptor({args[0]} + {args[1]}, {instr.arg})",
}
