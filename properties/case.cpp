#include "properties/case.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>

#include "kernels/input.hpp"
#include "kernels/narrow.hpp"

namespace softmax::properties {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::int64_t kElements = 1 << 17;

// A place in row r that visits the last, the first, and then any.
std::int64_t place(const Case& c, std::int64_t r) {
  if (r == 0) return c.cols - 1;
  if (r == 1) return 0;
  return std::int64_t(random_bits(c.seed, std::uint64_t(r)) % std::uint64_t(c.cols));
}

float smallest(DataType type) {
  return type == DataType::fp16 ? 0x1p-24f : type == DataType::bf16 ? 0x1p-133f : 0x1p-149f;
}

float value(const Case& c, std::int64_t r, std::int64_t i) {
  const std::uint64_t bits = random_bits(c.seed, std::uint64_t(r * c.cols + i));
  const float x = normal(bits);
  switch (c.kind) {
    case Kind::normal: return x;
    case Kind::wide: return 10 * x;
    case Kind::scales: return (r % 2 ? 10.0f : 0.1f) * x;
    case Kind::constant: return 0;
    case Kind::spike20: return i == place(c, r) ? 20 : 0;
    case Kind::spike200: return i == place(c, r) ? 200 : 0;
    // Over 12 in all, so that early and late elements both count.
    case Kind::creeping: return float(i) * 1e-5f;
    case Kind::ascending: return 12 * float(i) / float(c.cols);
    case Kind::descending: return 12 * float(c.cols - i) / float(c.cols);
    case Kind::grid: {
      const auto [step, count] = grid_step(c.types.in);
      return float(std::int64_t(bits % std::uint64_t(count)) - count / 2) * step;
    }
    case Kind::subnormal: return float(int(bits % 2001) - 1000) * smallest(c.types.in);
    // A masked row keeps at least one number.
    case Kind::mask_first: return i < c.cols / 3 ? -kInf : x;
    case Kind::mask_last: return i >= c.cols - c.cols / 3 ? -kInf : x;
    case Kind::mask_every_other: return i % 2 ? -kInf : x;
    case Kind::mask_all_but_one: return i == place(c, r) ? x : -kInf;
    case Kind::few_equal: return bits % 3 == 0 || i == place(c, r) ? 0 : -kInf;
  }
  return 0;
}

// Any number below `end`, whatever RapidCheck's size: its own range grows with the size and hardly ever ends at the end.
// Shrinks to 0.
rc::Gen<std::size_t> below(std::size_t end) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, end));
}

// What stands first is what a case shrinks to, as RapidCheck's element does not; what stands often is drawn often.
template <class T>
rc::Gen<T> pick(std::vector<T> list) {
  const std::size_t count = list.size();
  return rc::gen::map(below(count), [list = std::move(list)](std::size_t i) { return list[i]; });
}

rc::Gen<std::int64_t> width(std::int64_t end) {
  return rc::gen::map(below(std::size_t(end - 1)), [](std::size_t i) { return std::int64_t(i) + 1; });
}

rc::Gen<Schedule> schedules() {
  return rc::gen::map(below(10), [](std::size_t i) {
    if (i < 2) return Schedule{i == 0 ? Schedule::Order::forward : Schedule::Order::reverse, 0};
    return Schedule{Schedule::Order::seeded, i};
  });
}

template <class T>
std::vector<T> listed(const List<T>& list) {
  return {list.begin(), list.end()};
}

// Mostly the kernel's own choice.
rc::Gen<Plan> plans(const Traits& traits) {
  namespace gen = rc::gen;
  if (traits.plans.size() == 0) return gen::just(Plan());
  auto one = gen::build<Plan>(pick(listed(traits.plans)), gen::set(&Plan::shared, pick<int>({0, 0, 0, 1, 2, 3, 4})),
                              gen::set(&Plan::blocks, pick<int>({0, 1, 2, 3, 4, 8, 16})));
  return gen::weightedOneOf<Plan>({{3, gen::just(Plan())}, {2, one}});
}

rc::Gen<float> temperatures(bool wanted) {
  return wanted ? pick<float>({0.5f, 2, 0.0625f, 0.7f, 1.3f, 0.01f, 7e-3f, 100}) : rc::gen::just(1.0f);
}

// A kernel of few shapes would have nearly every case drawn again, so what it does not take is fitted first: dense rows,
// then the nearest smaller width that it takes, then such a number of rows.
class Fit {
 public:
  explicit Fit(const Kernel& kernel) : kernel_(kernel), gaps_(takes_gaps(kernel)) {
    const auto takes = [&](std::int64_t rows, std::int64_t cols) {
      return this->takes(
          {.rows = rows, .cols = cols, .block = kernel.traits().blocks[0], .types = kernel.traits().types[0]});
    };
    std::vector<std::int64_t> widths = column_list();
    for (std::int64_t c = 6; c <= 9000; c += c < 300 ? 1 : 24) widths.push_back(c);
    std::sort(widths.begin(), widths.end());
    for (std::int64_t c : widths)
      for (std::int64_t r : {1, 2, 3, 4, 8, 16, 32, 64, 128, 256})
        if (takes(r, c)) {
          cols_.push_back(c);
          rows_.push_back(r);
          break;
        }
    std::sort(rows_.begin(), rows_.end());
  }

  Case operator()(Case c) const {
    if (!gaps_) c.in_padding = c.out_padding = 0;
    if (c.in_place) {
      c.types.out = c.types.in;
      c.out_padding = c.in_padding;
      c.out_shift = c.in_shift;
    }
    if (!takes(c) && c.plan != Plan()) c = planned(c);
    if (takes(c) || cols_.empty()) return affordable(c);
    c.in_padding = c.out_padding = 0;
    if (!takes(c)) c.cols = nearest(cols_, c.cols);
    if (!takes(c)) c.rows = nearest(rows_, c.rows);
    return affordable(c);
  }
  bool takes(const Case& c) const {
    const Problem p = problem_of(c);
    return kernel_.unsupported(p).empty() && (!kernel_.traits().plan || kernel_.plan(p).threads != 0);
  }

 private:
  // With what the kernel takes of its plan, on as many of the columns as that holds.
  Case planned(Case c) const {
    const Case given = c;
    c.plan.shared = 0;
    if (!takes(c)) c.plan.blocks = 0;
    while (!takes(c) && c.cols > 1) c.cols /= 2;
    if (takes(c)) return c;
    c = given;
    c.plan = {};
    return c;
  }
  // A thread is a fiber on the CPU device, and a cluster or a grid has thousands a row: mostly a few rows, or a few blocks a
  // row, so that a law takes seconds. In one case of 16 so many that they outnumber the blocks that the device holds.
  Case affordable(Case c) const {
    if (!kernel_.machine().simulated()) return c;
    const std::int64_t most = c.seed % 16 == 15 ? 3 << 13 : 1 << 11;
    const auto lessen = [&](auto half) {
      for (Case less = c; takes(c) && threads_of(kernel_, c) > most; c = less) {
        half(less);
        if (!takes(less) || threads_of(kernel_, less) >= threads_of(kernel_, c)) break;
      }
    };
    lessen([](Case& of) { of.rows = (of.rows + 1) / 2; });
    lessen([this](Case& of) {
      of.plan = kernel_.plan(problem_of(of));
      of.plan.shared = 0;
      of.plan.blocks /= 2;
    });
    return c;
  }
  static std::int64_t nearest(const std::vector<std::int64_t>& sorted, std::int64_t to) {
    const auto above = std::upper_bound(sorted.begin(), sorted.end(), to);
    return above == sorted.begin() ? *above : *(above - 1);
  }
  const Kernel& kernel_;
  const bool gaps_;
  std::vector<std::int64_t> cols_, rows_;
};

}  // namespace

std::vector<std::int64_t> column_list() {
  std::vector<std::int64_t> list = {1,    2,    3,    5,    11,    100,   257,   448,   781,
                                    1000, 1017, 1027, 3584, 12287, 12288, 12289, 50257, 128256};
  for (std::int64_t p = 4; p <= 131072; p *= 2)
    for (std::int64_t c : {p - 1, p, p + 1}) list.push_back(c);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::vector<std::vector<float>> special_rows() {
  return {
      {0, 1, 2, 3},
      {1, 325, 749, 750},
      {-25, 0, 25, 50},
      {FLT_MAX, -FLT_MAX},
      {FLT_MAX, FLT_MAX, FLT_MAX},
      {-FLT_MAX, -FLT_MAX},
      {0, -87.3f, -87.4f, -95, -103.2f, -104},
      {5},
      {-kInf},
      {kInf},
      {NAN},
      {-kInf, 0},
      {0, -kInf},
      {-kInf, -kInf, 7, -kInf},
      {1, NAN, 2},
      {1, -NAN, 2},
      {1, 2, std::bit_cast<float>(0x7fc00001u)},
      {NAN, -kInf},
      {1, kInf, -kInf},
      {kInf, kInf},
      {0.0f, -0.0f},
      {1e-45f, -1e-45f, 1e-40f},
      std::vector<float>(512, -1000),
      std::vector<float>(1027, -2.45e5f),
      std::vector<float>(300, -kInf),
  };
}

Problem problem_of(const Case& c) {
  return {.rows = c.rows,
          .cols = c.cols,
          .in_stride = c.cols + c.in_padding,
          .out_stride = c.cols + (c.in_place ? c.in_padding : c.out_padding),
          .in_type = c.types.in,
          .out_type = c.types.out,
          .block = c.block,
          .plan = c.plan,
          .temperature = c.temperature,
          .max_blocks = c.max_blocks};
}

bool takes_gaps(const Kernel& kernel) {
  return std::ranges::any_of(column_list(), [&](std::int64_t cols) {
    const Case c{.rows = 2,
                 .cols = cols,
                 .in_padding = 1,
                 .out_padding = 1,
                 .block = kernel.traits().blocks[0],
                 .types = kernel.traits().types[0]};
    return kernel.unsupported(problem_of(c)).empty();
  });
}

std::int64_t threads_of(const Kernel& kernel, const Case& c) {
  const Plan by = kernel.plan(problem_of(c));
  return c.rows * by.threads * by.blocks;
}

float temperature_of(const Case& c, std::int64_t r) {
  return c.each_row ? c.temperature * float(1 + r % 3) : c.temperature;
}

void round_to(DataType type, std::vector<float>& x) {
  if (type == DataType::fp32) return;
  const float most = largest(type);
  for (float& v : x) v = rounded(std::isfinite(v) ? std::fmax(-most, std::fmin(most, v)) : v, type);
}

GridStep grid_step(DataType type) {
  const int digits = type == DataType::fp16 ? 11 : type == DataType::bf16 ? 8 : 24;
  return {std::ldexp(1.0f, 6 - digits), std::int64_t{1} << (digits - 1)};
}

std::vector<float> values(const Case& c) {
  std::vector<float> x;
  x.reserve(std::size_t(c.rows * c.cols));
  for (std::int64_t r = 0; r < c.rows; ++r)
    for (std::int64_t i = 0; i < c.cols; ++i) x.push_back(value(c, r, i) + c.offset);
  round_to(c.types.in, x);
  return x;
}

rc::Gen<Case> cases(const Kernel& kernel, std::vector<Kind> kinds, std::vector<float> offsets, Ask ask) {
  const Traits& traits = kernel.traits();
  namespace gen = rc::gen;
  // Half of the widths are any number, most of them small.
  auto cols = gen::weightedOneOf<std::int64_t>({{5, pick(column_list())}, {3, width(300)}, {2, width(9000)}});
  auto rows = pick<std::int64_t>({1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 5, 5, 8, 8, 33, 130, 260});
  // Where vectors of 16 bytes begin, where those of 8 do, and where none does; rows of whole vectors and others.
  auto shift = pick<int>({0, 0, 0, 0, 1, 2, 3, 4});
  auto padding = pick<int>({0, 0, 0, 0, 1, 2, 4, 5, 8});
  auto any = gen::build<Case>(
      gen::set(&Case::kind, pick(kinds)), gen::set(&Case::rows, rows), gen::set(&Case::cols, cols),
      gen::set(&Case::offset, pick(offsets)), gen::set(&Case::in_padding, padding),
      gen::set(&Case::out_padding, padding), gen::set(&Case::in_shift, shift), gen::set(&Case::out_shift, shift),
      gen::set(&Case::block, pick(listed(traits.blocks))), gen::set(&Case::types, pick(listed(traits.types))),
      gen::set(&Case::plan, plans(traits)), gen::set(&Case::in_place, gen::just(ask.in_place && traits.in_place)),
      gen::set(&Case::temperature, temperatures(ask.temperature && traits.temperature)),
      gen::set(&Case::each_row, pick<bool>({false, ask.temperature && traits.temperature})),
      gen::set(&Case::schedule, schedules()), gen::set(&Case::seed, gen::cast<std::uint64_t>(below(1u << 30))));
  const Fit fit(kernel);
  // 256 bytes are the most that a kernel may ask for.
  const auto aligned = [alignment = traits.alignment](int shift, DataType type) {
    const int bytes = int(bytes_per_element(type));
    return shift * std::max(alignment / bytes, 1) % (256 / bytes);
  };
  auto bounded = gen::map(any, [fit, aligned](Case c) {
    c.in_shift = aligned(c.in_shift, c.types.in);
    c.out_shift = aligned(c.out_shift, c.types.out);
    c.rows = std::min(c.rows, std::max<std::int64_t>(1, kElements / c.cols));
    return fit(c);
  });
  return gen::suchThat(bounded, [fit](const Case& c) { return fit.takes(c); });
}

}  // namespace softmax::properties
