// The replays that launch by themselves: thousands of times, or in memory that no host has.

#include <cmath>
#include <utility>

#include "properties/bounds.hpp"
#include "properties/trial.hpp"

namespace softmax::properties {
namespace {

// Dense memory of a case, for replays that launch by themselves.
struct Dense {
  Dense(const Kernel& k, const Case& c)
      : p(problem_of(c)),
        in(k.machine(), std::size_t(c.rows * c.cols) * bytes_per_element(c.types.in)),
        out(k.machine(), std::size_t(c.rows * c.cols) * bytes_per_element(c.types.out)),
        workspace(k.machine(), std::size_t(k.workspace(p))) {
    k.machine().fill(workspace.data(), 0, workspace.bytes());
    p.in = in.data(), p.out = out.data(), p.workspace = workspace.data();
  }
  Problem p;
  Buffer in, out, workspace;
};

}  // namespace

// What one row leaves behind in shared memory must not reach the next, in whatever order threads run; rows that
// several blocks share, too.
std::string many_launches(const Kernel& k) {
  Trial t(k);
  Machine& machine = k.machine();
  const bool gpu = !machine.simulated();
  std::vector<Case> cases = t.way(gpu ? 4096 : 6, gpu ? 1024 : 259);
  for (Case& c : t.ways(gpu ? 512 : 3, gpu ? 20000 : 2100))
    if (c.plan.blocks == 2 || k.traits().choice || (!k.traits().plan && c.block == 64)) cases.push_back(c);
  for (Case& c : cases) {
    c.kind = Kind::scales;
    t.judge(c, [&]() -> std::string {
      const auto x = values(c);
      const Output first = run(k, c, x);
      if (const std::string why = wrong_row(k, c, x, first.y); !why.empty()) return why;
      if (!gpu) {  // where the order can be set
        for (std::uint64_t i = 1; i <= (exhaustive(k) ? 1000u : 8u); ++i) {
          c.schedule = {i == 1 ? Schedule::Order::reverse : Schedule::Order::seeded, i};
          if (run(k, c, x).y != first.y) return say("other bits in launch ", i);
        }
        return {};
      }
      Dense at(k, c);
      Buffer want(machine, at.out.bytes());
      std::vector<unsigned char> bytes(at.in.bytes());
      for (std::size_t i = 0; i < x.size(); ++i) set_element(bytes.data(), i, c.types.in, x[i]);
      at.in.upload(bytes.data(), bytes.size());
      for (int i = 0; i < 1000; ++i) {
        at.out.poison();
        k.launch(at.p);
        machine.synchronize();
        if (i == 0) std::swap(at.out, want), at.p.out = at.out.data();
        if (i > 0 && !machine.equal(at.out.data(), want.data(), want.bytes())) return say("other bits in launch ", i);
      }
      return {};
    });
  }
  return t.verdict();
}

// Dense, on a GPU: all rows' sums, and those element by element that 31 or 32 bits would find elsewhere.
std::string past_32_bits(const Kernel& k) {
  constexpr std::int64_t kRows = (1 << 22) + 3, kCols = 1024;
  Trial t(k);
  Machine& machine = k.machine();
  const Case c{.rows = kRows, .cols = kCols, .block = k.traits().blocks[0]};
  t.judge(c, [&]() -> std::string {
    Dense at(k, c);
    machine.fill_noise(at.in.data(), std::size_t(kRows * kCols), 1);
    k.launch(at.p);
    machine.synchronize();
    if (!at.out.damage().empty()) return at.out.damage();
    const std::vector<double> sums = machine.row_sums(at.out.data(), {kRows, kCols, kCols});
    const auto model = error_model(k.traits(), at.p, machine.math() == "fast");
    const long double bound = reference::row_sum_bound(model, kCols, std::log(double(kCols))) + kCols * 0x1p-53L;
    for (std::int64_t r = 0; r < kRows; ++r)
      if (!(std::fabs(sums[std::size_t(r)] - 1) <= bound)) return say("row ", r, " sums to ", sums[std::size_t(r)]);
    Case alone = c;
    alone.rows = 1;
    for (const std::int64_t r :
         {std::int64_t{0}, kRows / 2 - 2, kRows / 2 - 1, kRows / 2, kRows - 4, kRows - 3, kRows - 1}) {
      std::vector<float> x(kCols), y(kCols);
      at.in.download(x.data(), kCols * sizeof(float), std::size_t(r * kCols) * sizeof(float));
      at.out.download(y.data(), kCols * sizeof(float), std::size_t(r * kCols) * sizeof(float));
      if (const std::string why = wrong_row(k, alone, x, y); !why.empty()) return say("of row ", r, ": ", why);
    }
    return {};
  });
  return t.verdict();
}

}  // namespace softmax::properties
