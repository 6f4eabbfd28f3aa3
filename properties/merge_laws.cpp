// The laws of (max, sum), asked of the collective's own code: a neutral element on both sides, any order and any grouping.
#include "properties/merge_laws.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

#include "kernels/input.hpp"
#include "properties/bounds.hpp"
#include "properties/judging.hpp"

namespace softmax::merge {

namespace {
std::vector<Merger>& registered() {
  static std::vector<Merger> all;
  return all;
}
}  // namespace
bool register_merger(const Merger& merger) {
  registered().push_back(merger);
  return true;
}
const std::vector<Merger>& mergers() { return registered(); }

namespace {

constexpr float kInf = INFINITY, kLog2E = 1.442695041f;
constexpr Pair kNothing{-kInf, 0};
constexpr int kCount = 4096;

// Maxima that are near each other, far apart, equal, huge; sums of 1 to 2^24 elements; sometimes nothing.
Pair draw(std::uint64_t seed, int i) {
  const std::uint64_t bits = random_bits(seed, std::uint64_t(i));
  const float x = normal(random_bits(seed + 1, std::uint64_t(i)));
  const float max[] = {x, 50 * x, 3, -5e4f + x, 1e30f * x, -FLT_MAX};
  if (bits % 8 == 7) return kNothing;
  return {max[bits % 8 % 6], std::max(1.0f, std::ldexp(1.0f + float(bits / 64 % 1000) / 1000, int(bits / 8 % 24)))};
}
std::vector<Pair> draws(std::uint64_t seed) {
  std::vector<Pair> all;
  for (int i = 0; i < kCount; ++i) all.push_back(draw(seed, i));
  return all;
}
bool same(Pair a, Pair b) {
  const auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
  return bits(a.max) == bits(b.max) && bits(a.sum) == bits(b.sum);
}
std::string text(Pair p) { return "(" + std::to_string(p.max) + ", " + std::to_string(p.sum) + ")"; }

using properties::say;

// Pairs on a merger's machine.
class On {
 public:
  explicit On(const Merger& merger) : merger_(merger) {}
  std::vector<Pair> two(const std::vector<Pair>& a, const std::vector<Pair>& b) const {
    return run({a, b},
               [&](const std::vector<Pair*>& at, Pair* out) { merger_.two(at[0], at[1], out, int(a.size()), kLog2E); });
  }
  std::vector<Pair> warps(const std::vector<Pair>& in) const {
    return run(
        {in}, [&](const std::vector<Pair*>& at, Pair* out) { merger_.warps(at[0], out, int(in.size()) / 32, kLog2E); });
  }
  // Of a merge at this depth, relative: each level an exp, a product and an addition, and the distance from the maximum.
  long double bound(int levels, long double distance) const {
    const reference::ExpError exp = arithmetic_of(merger_.machine()).shifted;
    const long double b = (levels * (exp.eps0 + 2) + (1 + exp.kappa) * distance) * reference::kUnit;
    return b < 1 ? b / (1 - b) : INFINITY;
  }

 private:
  template <class Launch>
  std::vector<Pair> run(const std::vector<std::vector<Pair>>& inputs, Launch launch) const {
    Machine& machine = merger_.machine();
    std::vector<Buffer> buffers;
    std::vector<Pair*> at;
    const std::size_t bytes = inputs[0].size() * sizeof(Pair);
    for (const auto& input : inputs) {
      buffers.emplace_back(machine, bytes);
      buffers.back().upload(input.data(), bytes);
      at.push_back(static_cast<Pair*>(buffers.back().data()));
    }
    Buffer out(machine, bytes);
    launch(at, static_cast<Pair*>(out.data()));
    machine.synchronize();
    std::vector<Pair> results(inputs[0].size());
    out.download(results.data(), bytes);
    return results;
  }
  const Merger& merger_;
};

std::string nothing_is_neutral(const Merger& merger, std::uint64_t seed) {
  const On on(merger);
  std::vector<Pair> some = draws(seed), nothing(some.size(), kNothing);
  some[0] = kNothing;
  const std::vector<Pair> left = on.two(nothing, some), right = on.two(some, nothing);
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (!same(left[i], some[i])) return say("nothing and ", text(some[i]), ": ", text(left[i]));
    if (!same(right[i], some[i])) return say(text(some[i]), " and nothing: ", text(right[i]));
  }
  return {};
}

std::string either_order_is_the_same(const Merger& merger, std::uint64_t seed) {
  const On on(merger);
  const std::vector<Pair> a = draws(seed), b = draws(~seed), ab = on.two(a, b), ba = on.two(b, a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    // The one product that an fma leaves unrounded is the other's the other way round.
    const bool near = std::fabs((long double)ab[i].sum - ba[i].sum) <= 4 * reference::kUnit * ab[i].sum;
    if (!near || ab[i].max != ba[i].max || ab[i].max != std::max(a[i].max, b[i].max))
      return say(text(a[i]), " and ", text(b[i]), ": ", text(ab[i]), ", the other way ", text(ba[i]));
  }
  return {};
}

std::string any_grouping_is_the_same(const Merger& merger, std::uint64_t seed) {
  const On on(merger);
  const std::vector<Pair> a = draws(seed), b = draws(seed + 2), c = draws(seed + 4);
  const std::vector<Pair> left = on.two(on.two(a, b), c), right = on.two(a, on.two(b, c));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double most = left[i].max;
    long double exact = 0, allowed = 0;
    for (const Pair p : {a[i], b[i], c[i]}) {
      if (p.sum == 0) continue;
      const long double d = most - p.max, term = p.sum * std::exp(-d);
      exact += term;
      allowed += d < 200 ? term * on.bound(2, d) + p.sum * 0x1p-125L : p.sum * 0x1p-125L;
    }
    for (const Pair p : {left[i], right[i]})
      if (p.max != left[i].max || !(std::fabs(p.sum - exact) <= allowed))
        return say(text(a[i]), ", ", text(b[i]), ", ", text(c[i]), ": ", text(p), ", exactly ", exact);
  }
  return {};
}

std::string a_warp_agrees(const Merger& merger, std::uint64_t seed) {
  const On on(merger);
  std::vector<Pair> in = draws(seed);
  std::fill(in.end() - 32, in.end(), kNothing);
  const std::vector<Pair> out = on.warps(in);
  for (std::size_t w = 0; w < in.size(); w += 32) {
    float most = -kInf;
    for (int lane = 0; lane < 32; ++lane) most = std::max(most, in[w + std::size_t(lane)].max);
    long double exact = 0, allowed = 0;
    for (int lane = 0; lane < 32; ++lane) {
      const Pair p = in[w + std::size_t(lane)];
      if (p.sum == 0) continue;
      const long double d = (long double)most - p.max, term = p.sum * std::exp(-d);
      exact += term;
      allowed += (d < 200 ? term * on.bound(6, d) : 0) + p.sum * 0x1p-125L;
    }
    for (int lane = 0; lane < 32; ++lane)
      if (const Pair got = out[w + std::size_t(lane)];
          !same(got, out[w]) || got.max != most || !(std::fabs(got.sum - exact) <= allowed))
        return say("warp ", w / 32, ", lane ", lane, ": ", text(got), ", exactly ", exact);
  }
  return {};
}

// A NaN or +inf among the elements is in the sum by then, or makes it one.
std::string what_is_undefined_stays_so(const Merger& merger, std::uint64_t seed) {
  std::vector<Pair> broken = draws(seed), any = draws(~seed);
  for (std::size_t i = 0; i < broken.size(); ++i) broken[i] = i % 2 ? Pair{kInf, 1} : Pair{broken[i].max, NAN};
  for (std::size_t i = 0; i < any.size(); i += 5) any[i] = broken[(i + 1) % any.size()];
  for (const auto& out : {On(merger).two(broken, any), On(merger).two(any, broken)})
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!std::isnan(out[i].sum)) return say(text(broken[i]), " with ", text(any[i]), ": ", text(out[i]));
  return {};
}

constexpr MergeLaw kLaws[] = {
    {"nothing_is_neutral", nothing_is_neutral},
    {"either_order_is_the_same", either_order_is_the_same},
    {"any_grouping_is_the_same", any_grouping_is_the_same},
    {"a_warp_agrees_and_is_right", a_warp_agrees},
    {"what_is_undefined_stays_so", what_is_undefined_stays_so},
};

}  // namespace

std::span<const MergeLaw> merge_laws() { return kLaws; }

}  // namespace softmax::merge
