// Runs emitted CUDA C on the host: one coroutine per thread of a block, switched at every barrier,
// shuffle and warp-wide instruction. Asynchronous copies happen at the wait, as late as allowed.
// What every kernel needs is compiled once, where CUDA_SHIM_RUNTIME is defined, and linked.
#pragma once
#undef _FORTIFY_SOURCE  // which takes a jump to another stack for a fault
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define DEVICE inline
#define __global__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
using std::abs, std::ceil, std::copysign, std::cos, std::erf, std::exp, std::fabs, std::floor;
using std::fma, std::fmod, std::log, std::pow, std::rint, std::sin, std::sqrt, std::tan, std::tanh;
using std::trunc;

struct Place { int x; };

extern Place threadIdx, blockIdx;
template <int threads> static inline int thread_number() { return threadIdx.x; }
extern long long posted[1024][4];
extern unsigned char* shared_bytes;
static void** given;  // the arguments of the kernel that runs
void run_grid(void (*body)(), int blocks, int threads, size_t shared, bool is_reversed);
void __syncthreads();
void warp_meet();
void copy_later(void* to, const void* from, bool is_inside, int size);
void copy_async_commit();
void wait_copies(int pending);
void load_rows(unsigned* r, const void* p, bool is_transposed);
void multiply_later(std::function<void()> multiply);
void warpgroup_commit();
void wait_multiplies(int pending);

static inline void __threadfence() {}
static inline unsigned char* shared_memory() { return shared_bytes; }
template <typename T> static inline T exchange(T a, int mask) {
  memcpy(posted[threadIdx.x], &a, sizeof(T));
  warp_meet();
  T result;
  memcpy(&result, posted[threadIdx.x ^ mask], sizeof(T));
  warp_meet();
  return result;
}
static inline void __syncwarp() { warp_meet(); }
static inline int __popc(unsigned a) { return __builtin_popcount(a); }
template <int bits> static inline unsigned match_any(unsigned a) {
  int first = threadIdx.x / 32 * 32;
  a &= (1u << bits) - 1;
  memcpy(posted[threadIdx.x], &a, sizeof(a));
  warp_meet();
  unsigned result = 0, other;
  for (int lane = 0; lane < 32; lane++) {
    memcpy(&other, posted[first + lane], sizeof(other));
    result |= (unsigned)(other == a) << lane;
  }
  warp_meet();
  return result;
}
static inline int claim(int* cells, int* shared, int before) {
  __syncthreads();
  if (threadIdx.x == 0) {
    if (before >= 0) cells[1]++;
    *shared = cells[0]++;
  }
  __syncthreads();
  return *shared;
}
static inline void claims_wait(int* cells, int count, int blocks) {  // the first block claims all
  if (threadIdx.x == 0) {
    if (cells[1] != count) abort();
    if (++cells[2] == blocks) cells[0] = cells[1] = cells[2] = 0;
  }
  __syncthreads();
}
template <typename T, typename V> static inline T atomicAdd(T* p, V v) { T old = *p; *p += v; return old; }
static inline float __uint_as_float(unsigned a) { float r; memcpy(&r, &a, 4); return r; }
static inline float __int_as_float(int a) { float r; memcpy(&r, &a, 4); return r; }
static inline double __longlong_as_double(long long a) { double r; memcpy(&r, &a, 8); return r; }

struct half { unsigned short bits; };
struct bfloat16 { unsigned short bits; };
static inline float to_float(half a) { _Float16 r; memcpy(&r, &a.bits, 2); return (float)r; }
static inline float to_float(bfloat16 a) { return __uint_as_float((unsigned)a.bits << 16); }
template <typename T> T round_to(float a);
template <> inline half round_to(float a) {
  _Float16 rounded = (_Float16)a;
  half result;
  memcpy(&result.bits, &rounded, 2);
  return result;
}
template <> inline bfloat16 round_to(float a) {
  unsigned bits;
  memcpy(&bits, &a, 4);
  if (a != a) return bfloat16{0x7fc0};
  return bfloat16{(unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

template <typename T, typename S>
static inline void copy_async(T* to, int at, const S* from, long long index, bool is_inside) {
  copy_later(to + at, from + index, is_inside, 16);
}
template <typename T, typename S>
static inline void copy_async_element(T* to, int at, const S* from, long long index, bool is_inside) {
  copy_later(to + at, from + index, is_inside, sizeof(T));
}
template <int pending> static inline void copy_async_wait() { wait_copies(pending); }
static inline void load_matrices(unsigned* r, const void* p) { load_rows(r, p, false); }
static inline void load_matrices_transposed(unsigned* r, const void* p) { load_rows(r, p, true); }
#pragma GCC push_options
#pragma GCC optimize("O2")
template <typename T> static inline void multiply(float* c, const unsigned* a, const unsigned* b) {
  static unsigned words[1024][6];
  int warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  memcpy(words[threadIdx.x], a, 16);
  memcpy(words[threadIdx.x] + 4, b, 8);
  warp_meet();
  for (int e = 0; e < 4; e++) {
    int row = lane / 4 + 8 * (e / 2), column = 2 * (lane % 4) + e % 2;
    for (int k = 0; k < 16; k++) {
      unsigned x = words[warp + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2] >> 16 * (k % 2);
      unsigned y = words[warp + column * 4 + k % 8 / 2][4 + k / 8] >> 16 * (k % 2);
      c[e] += to_float(T{(unsigned short)x}) * to_float(T{(unsigned short)y});
    }
  }
  warp_meet();
}
static inline unsigned to_tf32(float a) {
  unsigned bits;
  memcpy(&bits, &a, 4);
  return bits & ~0x1fffu;
}
template <typename real, typename part>
static inline void multiply_m16n8k8(real* c, const part* a, const part* b) {
  static real values[1024][6];
  int warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  memcpy(values[threadIdx.x], a, 4 * sizeof(real));
  memcpy(values[threadIdx.x] + 4, b, 2 * sizeof(real));
  warp_meet();
  for (int e = 0; e < 4; e++) {
    int row = lane / 4 + 8 * (e / 2), column = 2 * (lane % 4) + e % 2;
    for (int k = 0; k < 8; k++)
      c[e] += values[warp + row % 8 * 4 + k % 4][row / 8 + k / 4 * 2] * values[warp + column * 4 + k % 4][4 + k / 4];
  }
  warp_meet();
}
static inline void multiply_tf32(float* c, const unsigned* a, const unsigned* b) { multiply_m16n8k8(c, a, b); }
static inline void multiply_float64(double* c, const double* a, const double* b) { multiply_m16n8k8(c, a, b); }
#pragma GCC pop_options
static inline void multiply_float16(float* c, const unsigned* a, const unsigned* b) { multiply<half>(c, a, b); }
static inline void multiply_bfloat16(float* c, const unsigned* a, const unsigned* b) { multiply<bfloat16>(c, a, b); }

static inline unsigned shared_address(const void* p) { return (const unsigned char*)p - shared_bytes; }
static inline void fence_async_proxy() {}
static inline void warpgroup_fence() {}
template <int pending> static inline void warpgroup_wait() { wait_multiplies(pending); }
static inline int warpgroup() { return threadIdx.x / 128; }
static inline void keep(float& value) {}
#pragma GCC push_options
#pragma GCC optimize("O2")  // here the programs spend their time
// One value of a swizzled operand: row m (or n), depth k, found through its matrix descriptor.
template <typename T, bool is_transposed>
static inline float described(unsigned long long d, int row, int k) {
  unsigned start = (d & 0x3fff) << 4, slab = (d >> 16 & 0x3fff) << 4, group = (d >> 32 & 0x3fff) << 4;
  unsigned at = is_transposed ? start + row / 64 * slab + k / 8 * group + k % 8 * 128 + row % 64 * 2
                              : start + row / 8 * group + row % 8 * 128 + k * 2;
  at ^= (at >> 7 & 7) << 4;
  T value;
  memcpy(&value, shared_bytes + at, 2);
  return to_float(value);
}
template <typename T, int n, bool a_transposed, bool b_transposed>
static void multiply_part(float* d, unsigned long long a, unsigned long long b, int warp, int lane) {
  for (int i = 0; i < n / 2; i++) {
    int row = 16 * warp + lane / 4 + 8 * (i % 4 / 2), column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
    for (int k = 0; k < 16; k++)
      d[i] += described<T, a_transposed>(a, row, k) * described<T, b_transposed>(b, column, k);
  }
}
#pragma GCC pop_options
template <typename T, int n, bool a_transposed, bool b_transposed>
static inline void warpgroup_multiply(float* d, unsigned long long a, unsigned long long b) {
  int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  multiply_later([=] { multiply_part<T, n, a_transposed, b_transposed>(d, a, b, warp, lane); });
}

#ifdef CUDA_SHIM_RUNTIME
struct Copy { void* to; const void* from; bool is_inside; int size; };
using Multiplies = std::vector<std::function<void()>>;
struct Lane {
  ucontext_t context;  // where a thread begins, and where it is later: a jump asks no kernel
  jmp_buf place;
  bool is_begun, is_done;
  std::vector<std::vector<Copy>> groups;  // the last one is still open
  std::vector<Multiplies> multiplies;
};
struct Meeting { int arrived = 0, generation = 0; };

Place threadIdx, blockIdx;
long long posted[1024][4];
unsigned char* shared_bytes;
static int thread_count;
static std::vector<Lane> lanes;
static jmp_buf scheduler;
static Meeting block_meeting, warp_meeting[32];
static void (*run_thread)();

static inline void switch_thread() {
  int self = threadIdx.x;
  if (!_setjmp(lanes[self].place)) _longjmp(scheduler, 1);
  threadIdx.x = self;
}
__attribute__((noinline)) static void resume(int thread) {
  threadIdx.x = thread;
  if (_setjmp(scheduler)) return;
  if (lanes[thread].is_begun) _longjmp(lanes[thread].place, 1);
  lanes[thread].is_begun = true;
  setcontext(&lanes[thread].context);
}
static inline void meet(Meeting& meeting, int count) {
  int generation = meeting.generation;
  if (++meeting.arrived == count) { meeting.arrived = 0; meeting.generation++; }
  while (meeting.generation == generation) switch_thread();
}
void __syncthreads() { meet(block_meeting, thread_count); }
void warp_meet() {
  int first = threadIdx.x / 32 * 32;
  meet(warp_meeting[threadIdx.x / 32], thread_count - first < 32 ? thread_count - first : 32);
}
static void enter() {
  run_thread();
  lanes[threadIdx.x].is_done = true;
  while (true) switch_thread();
}
static void run_block(int block, int threads, size_t shared, bool is_reversed) {
  blockIdx.x = block;
  thread_count = threads;
  block_meeting = Meeting();
  for (Meeting& meeting : warp_meeting) meeting = Meeting();
  memset(shared_bytes, 0xff, shared);
  const size_t stack = 64 << 10;
  static char* stacks = (char*)malloc(1024 * stack);
  lanes.assign(threads, Lane());
  for (int i = 0; i < threads; i++) {
    getcontext(&lanes[i].context);
    lanes[i].context.uc_stack.ss_sp = stacks + i * stack;
    lanes[i].context.uc_stack.ss_size = stack;
    lanes[i].is_begun = lanes[i].is_done = false;
    lanes[i].groups.emplace_back();
    lanes[i].multiplies.emplace_back();
    makecontext(&lanes[i].context, enter, 0);
  }
  for (int left = threads, rounds = 0; left; rounds++) {
    if (rounds > 1000000) { fprintf(stderr, "cuda_shim: a barrier never completes\n"); abort(); }
    for (int i = 0; i < threads; i++) {
      int thread = is_reversed ? threads - 1 - i : i;
      if (lanes[thread].is_done) continue;
      resume(thread);
      left -= lanes[thread].is_done;
    }
  }
}
void run_grid(void (*body)(), int blocks, int threads, size_t shared, bool is_reversed) {
  run_thread = body;
  shared_bytes = (unsigned char*)aligned_alloc(1024, (shared + 2048) / 1024 * 1024);
  for (int i = 0; i < blocks; i++)
    run_block(is_reversed ? blocks - 1 - i : i, threads, shared, is_reversed);
  free(shared_bytes);
}
void copy_later(void* to, const void* from, bool is_inside, int size) {
  lanes[threadIdx.x].groups.back().push_back(Copy{to, from, is_inside, size});
}
void copy_async_commit() { lanes[threadIdx.x].groups.emplace_back(); }
void wait_copies(int pending) {
  auto& groups = lanes[threadIdx.x].groups;  // the last group is still open
  while ((int)groups.size() - 1 > pending) {
    for (Copy& copy : groups.front()) {
      if (copy.is_inside) memcpy(copy.to, copy.from, copy.size); else memset(copy.to, 0, copy.size);
    }
    groups.erase(groups.begin());
  }
}
void load_rows(unsigned* r, const void* p, bool is_transposed) {
  int warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  if ((size_t)p % 16) { fprintf(stderr, "cuda_shim: ldmatrix address not aligned\n"); abort(); }
  memcpy(posted[threadIdx.x], &p, sizeof(p));
  warp_meet();
  for (int matrix = 0; matrix < 4; matrix++) {
    for (int e = 0; e < 2; e++) {
      int row = lane / 4, column = 2 * (lane % 4) + e;
      if (is_transposed) { int t = row; row = column; column = t; }
      unsigned short* source;
      memcpy(&source, posted[warp + matrix * 8 + row], sizeof(source));
      r[matrix] = (e ? r[matrix] & 0xffff : 0) | (unsigned)source[column] << 16 * e;
    }
  }
  warp_meet();
}
void multiply_later(std::function<void()> multiply) {
  lanes[threadIdx.x].multiplies.back().push_back(multiply);
}
void warpgroup_commit() { lanes[threadIdx.x].multiplies.emplace_back(); }
void wait_multiplies(int pending) {  // multiplies as late as allowed
  auto& groups = lanes[threadIdx.x].multiplies;
  while ((int)groups.size() - 1 > pending) {
    for (auto& multiply : groups.front()) multiply();
    groups.erase(groups.begin());
  }
}
#endif
