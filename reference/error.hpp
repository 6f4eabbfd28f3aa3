#pragma once
// How wrong a float softmax is, and how wrong it may be: bounds derived from its arithmetic, with no number picked.
//
// u = 2^-24. Write every rounding and every exp's error as a factor (1 + delta); B adds up all |delta| on the way to one
// output. Any product of such factors and their inverses lies within B / (1 - B) of 1 if B < 1, whatever the order. PROOFS.md
// has the theorems, and what each takes for granted; the constants of single steps are proven by Gappa (proofs/).
// Check with !(error <= bound): a NaN must fail.

#include <cstdint>
#include <optional>
#include <span>

namespace softmax::reference {

inline constexpr double kUnit = 0x1p-24;                    // u, the largest relative error of one float rounding
inline constexpr double kDoubleRounding = 0x1p-53 / kUnit;  // of one in double, in units of u

// Steps between neighbouring floats from one to the other; -0 and +0 are one point, FLT_MAX and inf are neighbours. NaN
// and NaN: 0. NaN and a number: the largest int64.
std::int64_t ulp_distance(float, float);
// |value - exact| in units of the float spacing at exact; 2^-149 near 0. NaN and NaN, or a value of inf where exact
// rounds to it: 0. Only one of the two NaN or infinite: inf.
double ulp_error(float value, long double exact);

// Error of exp(-d), relative, in units of u: eps0 + kappa * d. N ulp from correctly rounded are (2N + 1) u. NVIDIA's
// tables (CUDA guide, PTX ISA) are tests, not proofs; a device is to be certified once.
struct ExpError {
  double eps0, kappa;
};
// expf is 2 ulp.
inline constexpr ExpError kExpf{5, 0};
// __expf(x) = ex2.approx(x * log2e): 2 ulp; the product rounds (1 u), and log2e as a float is off by 0.2242 u.
inline constexpr ExpError kFastExp{5, 1.2242};
// A scale of fl(log2e / T) in place of log2e: 1 more, unless T is a power of two.
inline constexpr double kQuotientScale = 1;
// ex2.approx of a power whose error is given back to first order: a rounding more. Left over are this many halvings for each
// unit of d, and of second order ((kFastExp.kappa + kQuotientScale) u d)^2 / 2.
inline constexpr double kFineLeft = 6.2e-14;
inline constexpr ExpError kFineExp{6, 0x1p-15};
// exp2f(fma(x, log2e, -M)), M = fl(max * log2e). The fma's rounding, counted here, stands in for that of x - max, so
// a may be 0. M's own rounding scales all terms alike and cancels, if rescaling factors are built from rounded M's too.
// Valid while it is small: |max| < 2^18 leaves 0.02 u. From |max| near 2^31 on the terms overflow or vanish.
inline constexpr ExpError kExp2Folded{5, 1.2242};

// Error of e / sum, in units of u.
inline constexpr double kDivideIeee = 1;
inline constexpr double kDivideReciprocal = 2;  // e * (1 / sum): two roundings
inline constexpr double kDivideFast = 5;        // __fdividef, 2 ulp; its hole above 2^126 is out of reach, sum <= cols
inline constexpr double kDivideFastReciprocal = 4;  // e * rcp.approx(sum): 1 ulp, and a rounding

// Of a row that is scaled by fl(1 / T) before the maximum is taken, unless T is a power of two: two roundings.
inline constexpr double kScaledRow = 2;

// What a sum of exps whose errors grow with d owes beyond first order, in units of u: at most this up to 2^40 columns.
inline constexpr double kSecondOrder = 0x1p-10;

// Absolute error of one output where exponentials underflow: 2.5 spacings of exp's and 0.5 of the division's; or,
// flushed to zero, 2^-126 of each.
inline constexpr double kEtaGradual = 0x3p-149;
inline constexpr double kEtaFlushed = 0x1p-125 + 0x1p-149;

// What rounding the float output to a narrower type adds: relative, in units of u, and absolute near 0.
struct OutputError {
  double relative, absolute;
};
inline constexpr OutputError kFp32Output{0, 0};
inline constexpr OutputError kFp16Output{0x1p13, 0x1p-25};
inline constexpr OutputError kBf16Output{0x1p16, 0x1p-134};

// A kernel's arithmetic on one row. All counts are those of the worst term of the sum.
struct ErrorModel {
  double a = 1;           // roundings of x - max: 1; 0 if all differences are exact; kScaledRow more of a scaled row
  double scaled_max = 0;  // of a row that is scaled by fl(1 / temperature): its largest element's absolute value
  ExpError exp = kExpf;   // of the outputs
  std::optional<ExpError> sum_exp = {};  // of what is added up; none: the same exp, and if not online the same bits
  double divide = kDivideIeee;
  double additions = 0;  // h: additions a term passes through; adding an exact 0 does not count
  bool online = false;
  double rescales = 0;      // R, of a thread's running sum; only if online
  double merges = 0;        // L, of partial (max, sum) pairs; only if online
  bool double_sum = false;  // sums and rescaled sums are double and rounded to float once; exp stays float
  OutputError output = kFp32Output;
  double eta = kEtaGradual;
};

// Here d = max - x_i (inf for an x of -inf), y = the exact output, spread = D of the row, all from reference::analyse.
// A row of NaN has no bound: its outputs must be NaN.

// The row x / T as a kernel has it is t = fl(x * fl(1 / T)) = x / T * (1 + c) (1 + r_i), c and r_i at most u. c is common,
// so it moves max - t_i by u d. r_i moves it by u |t_i| <= u (|max| + d); the maximum's own is common to all terms and
// cancels. Together, in one exponent: u (2 d + |max|), and 2 D + |max| in the sum's. A power of two costs nothing. Of
// (x - max) * fl(log2e / T) nothing but the scale is off: kQuotientScale.

// B_i.
long double relative_error(const ErrorModel&, long double d, long double spread);
// Bound on |output - y|; inf, so no promise, where B_i >= 1. Only d >= 110 needs no B: it gives eta.
long double element_bound(const ErrorModel&, long double y, long double d, long double spread);
// Bound on |sum of the outputs - 1|, the sum taken exactly. For a safe kernel without sum_exp neither exp nor the row enters,
// so this is a sharp test of its reduction (12 u for 1000 columns on 256 threads, block_warp); for others it is not.
long double row_sum_bound(const ErrorModel&, std::int64_t cols, long double spread);

// How a row is added up. Any order at all is covered by sequential.
enum class Order {
  sequential,    // one thread, left to right; threads is ignored
  warp,          // 32 lanes stride over the row, then a tree; threads is ignored
  block_tree,    // all threads stride over the row, then one tree
  block_serial,  // the same with a tree in each warp, then one thread adds the warps' sums
  block_warp,    // the same with a tree in each warp, then a tree over the warps' sums
};
// h and L, for one element at a time and thread. Both throw std::invalid_argument if cols < 0, or threads < 1 where
// threads count. A sequential online kernel has no merge; one of unknown order: rescales = cols - 1 covers both.
std::int64_t additions(Order, std::int64_t cols, int threads);
std::int64_t merges(Order, std::int64_t cols, int threads);

// R by replay: over all threads t the most often that the running maximum of elements t, t + threads, ... rises from a
// number to a larger one. The first number does not count: the sum before it is an exact 0. A factor of exp(0) = 1 is
// exact, so kernels that always rescale are covered. Throws std::invalid_argument if threads < 1.
std::int64_t running_max_updates(std::span<const float> row, int threads);

}  // namespace softmax::reference
