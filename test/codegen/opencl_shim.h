// Runs emitted OpenCL C on the host, on the coroutines of cuda_shim.h: a work-group is a block.
#pragma once
#include "cuda_shim.h"

#undef DEVICE
#define __kernel static
#define __global
#define __local
#define restrict __restrict__
#define overloadable unused
#define reqd_work_group_size(...) unused
#define intel_reqd_sub_group_size(...) unused
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
struct uint4 {
  uint x, y, z, w;
  uint4(uint a = 0) : x(a), y(a), z(a), w(a) {}
};

#define AS(TO, FROM) \
  static inline TO as_##TO(FROM a) { TO result; memcpy(&result, &a, sizeof(a)); return result; }
AS(float, uint) AS(uint, float) AS(double, long) AS(double, ulong) AS(ulong, double)
#define SATURATE(T) \
  template <typename F> static inline T convert_##T##_sat(F a) { \
    const T low = (T)-1 < (T)0 ? (T)(1ull << (8 * sizeof(T) - 1)) : (T)0, high = (T)~low; \
    return a != a ? (T)0 : a <= (F)low ? low : a >= (F)high ? high : (T)a; \
  }
SATURATE(uchar) SATURATE(ushort) SATURATE(uint) SATURATE(ulong)
SATURATE(char) SATURATE(short) SATURATE(int) SATURATE(long)
static inline float vload_half(int at, const half* from) { return to_float(from[at]); }
static inline void vstore_half_rte(float a, int at, half* to) { to[at] = round_to<half>(a); }

static inline int get_group_id(int axis) { return blockIdx.x; }
static inline int get_local_id(int axis) { return threadIdx.x; }
static inline void barrier(int kinds) { __syncthreads(); }
static inline void mem_fence(int kinds) {}
static inline void sub_group_barrier(int kinds) { warp_meet(); }
template <typename T> static inline T sub_group_shuffle_xor(T a, int mask) {
  return exchange(a, mask);
}
static inline uint4 sub_group_ballot(int is_set) {
  const int first = threadIdx.x / 32 * 32;
  memcpy(posted[threadIdx.x], &is_set, sizeof(is_set));
  warp_meet();
  uint4 result;
  for (int lane = 0, other; lane < 32; lane++) {
    memcpy(&other, posted[first + lane], sizeof(other));
    result.x |= (uint)(other != 0) << lane;
  }
  warp_meet();
  return result;
}
template <typename T> static inline T atomic_add(volatile T* place, T value) {
  const T old = *place;
  *place = old + value;
  return old;
}
template <typename T> static inline T exchange_if(volatile T* place, T seen, T wanted) {
  const T old = *place;
  if (old == seen) *place = wanted;
  return old;
}
#define atomic_cmpxchg exchange_if
#define atom_cmpxchg exchange_if
static inline int popcount(uint a) { return __builtin_popcount(a); }
