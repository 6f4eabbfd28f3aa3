#include "properties/mutants/battery.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include "kernels/input.hpp"

namespace softmax::properties {
namespace {

// Laws that drew alike would all look at the same few widths.
std::uint64_t seed_of(const Law& law) {
  std::uint64_t seed = 1;
  for (const char c : law.name) seed = mix(seed ^ std::uint64_t(static_cast<unsigned char>(c)));
  return seed;
}

constexpr int kDraws = 450;                  // the rarest generator is one in 75
constexpr int kCases = 3, kAtLeast = 24;     // of a generator, of a law
constexpr std::int64_t kElements = 1 << 14;  // larger cases take most of the time

std::string generator(const Case& c) { return std::string(name(c.kind)) + (c.offset == 0 ? "" : "+"); }

bool holds(const Law& law, const Kernel& kernel, const Case& c) {
  try {
    return law.refute(kernel, c).empty();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

std::map<std::string, Asked> ask(const Law& law, const Kernel& kernel, const std::string& only) {
  std::map<std::string, std::vector<Case>> drawn;
  const rc::Gen<Case> gen = law.cases(kernel);
  for (int i = 0; i < kDraws; ++i) {
    const Case c = gen(rc::Random(mix(seed_of(law) + std::uint64_t(i))), i % 100).value();
    if (c.rows * c.cols <= kElements) drawn[generator(c)].push_back(c);
  }
  std::map<std::string, Asked> all;
  for (const auto& [generator, list] : drawn) {
    if (!only.empty() && generator != only) continue;
    Asked& one = all[generator];
    // A law of few generators gets more of each.
    const int most = std::min(int(list.size()), std::max(kCases, kAtLeast / int(drawn.size())));
    while (one.cases < most && one.kill == 0)
      if (!holds(law, kernel, list[std::size_t(one.cases++)])) one.kill = one.cases;
  }
  return all;
}

}  // namespace softmax::properties
