// Softmax with one step wrong each time; the sentence says how. V900 has none wrong: it must keep every law.
#include "properties/sabotage/skeleton.hpp"

namespace {

using softmax::sabotage::Right;

struct right : Right {};
SABOTAGE(900, right, "No sabotage: the skeleton itself must keep every law.")

struct no_maximum : Right {
  __device__ static float reference(float) { return 0; }
};
SABOTAGE(901, no_maximum, "The unsafe formula: exp(x) without a maximum.")

struct drops_last : Right {
  __device__ static long end(long cols) { return cols > 1 ? cols - 1 : cols; }
};
SABOTAGE(902, drops_last, "The last element is not counted.")

struct no_barrier : Right {
  __device__ static void barrier() {}
};
SABOTAGE(903, no_barrier, "Warps read each other's maxima without waiting for them.")

struct first_warp : Right {
  __device__ static unsigned max_warps(unsigned) { return 1; }
};
SABOTAGE(904, first_warp, "The maximum is that of the first warp.")

struct zero_maximum : Right {
  __device__ static float first_max() { return 0; }
};
SABOTAGE(905, zero_maximum, "The maximum starts at 0, so negative rows have a wrong one.")

struct stale_sum : Right {
  __device__ static float first_sum(float previous) { return previous; }
};
SABOTAGE(906, stale_sum, "The sum starts where the previous row left it.")

struct half_sum : Right {
  __device__ static float add(float sum, float e) {
    return __uint_as_float((__float_as_uint(sum + e) + 0x1000u) & ~0x1fffu);
  }
};
SABOTAGE(907, half_sum, "The sum is kept in 16 bits: 11 of significand, rounded to nearest.")

struct zeros : Right {
  __device__ static float output(float, float, long, long) { return 0; }
};
SABOTAGE(908, zeros, "Every output is 0.")

struct nans : Right {
  __device__ static float output(float, float, long, long) { return NAN; }
};
SABOTAGE(909, nans, "Every output is NaN: no comparison of errors with a bound may let that pass.")

struct next_row : Right {
  __device__ static long end(long cols) { return cols + 1; }
};
SABOTAGE(910, next_row, "One element of the next row is counted.")

struct past_the_end : Right {
  __device__ static long written(long cols) { return cols + 1; }
};
SABOTAGE(911, past_the_end, "One element past the row's end is written.")

struct drops_nan : Right {
  __device__ static bool keep(float x) { return x == x; }
  __device__ static float output(float e, float sum, long, long) { return e == e ? e / sum : 0; }
};
SABOTAGE(912, drops_nan, "A NaN does not count.")

struct soft_mask : Right {
  __device__ static float element(float x) { return x < -60 && x == -INFINITY ? -60 : x; }
};
SABOTAGE(913, soft_mask, "A -inf is taken for -60, so masked elements get a little.")

struct other_tail : Right {
  __device__ static float output(float e, float sum, long i, long cols) {
    return i + 8 < cols ? e / sum : e * (1 / sum) * 1.0000002f;
  }
};
SABOTAGE(914, other_tail, "The last 8 elements are divided another way, so equal inputs get unequal bits.")

struct coarse_input : Right {
  __device__ static float element(float x) { return fabsf(x) < 64 ? rintf(x * 256) / 256 : x; }
};
SABOTAGE(915, coarse_input,
         "Elements are rounded to 2^-8 before use: right for many inputs, but not the same after a shift.")

struct above_one : Right {
  __device__ static float output(float e, float sum, long, long) { return e / sum * 1.0000001f; }
};
SABOTAGE(916, above_one, "Outputs are a trifle too large, which only the largest possible one shows.")

struct sentinel : Right {
  __device__ static float first_max() { return -5e4f; }
};
SABOTAGE(917, sentinel, "The maximum starts at a number that is low enough for most rows.")

struct crowd : Right {
  static long blocks(long rows, long threads) { return rows * threads; }
};
SABOTAGE(918, crowd, "A block for each of a row's threads; nearly all of them find nothing to do.")

}  // namespace
