#include <algorithm>
#include <string>
#include <vector>

#include "kernels/device/simt/state.hpp"

namespace softmax::device::simt {
namespace {

// "0-31, 64" out of a list of ranks in ascending order.
std::string ranges(const std::vector<unsigned>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]) + (j > i ? "-" + std::to_string(ranks[j]) : "");
    i = j + 1;
  }
  return text;
}

}  // namespace

const char* spell(Scope s) {
  return s == Scope::block ? "__syncthreads" : s == Scope::cluster ? "cluster.sync" : "grid.sync";
}
const char* spell(Meet m) { return m == Meet::sync ? "a warp barrier" : m == Meet::shuffle ? "a shuffle" : "a vote"; }

std::string at(Where w) {
  std::string file = w.file;
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(w.line);
}

std::string describe(const Block& b) { return "block " + std::to_string(b.number); }

std::string roll_call(const Block& b) {
  struct Group {
    std::string what;
    std::vector<unsigned> ranks;
  };
  std::vector<Group> groups;
  for (unsigned t = 0; t < launch->threads_per_block; ++t) {
    const Thread& thread = b.threads[t];
    std::string what;
    switch (thread.state) {
      case State::returned: what = "returned"; break;
      case State::ready: what = "are running"; break;
      case State::spinning: what = "are spinning" + (thread.where.line ? " at " + at(thread.where) : ""); break;
      case State::at_warp: what = "wait for their warp at " + at(thread.where); break;
      case State::at_block: what = "wait at __syncthreads at " + at(thread.where); break;
      case State::at_cluster: what = "wait at cluster.sync at " + at(thread.where); break;
      case State::at_grid: what = "wait at grid.sync at " + at(thread.where); break;
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&](auto& g) { return g.what == what; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{what, {}});
    group->ranks.push_back(t);
  }
  std::string text = describe(b) + ": ";
  for (std::size_t i = 0; i < groups.size(); ++i)
    text += (i ? "; " : "") + std::string("threads ") + ranges(groups[i].ranks) + " " + groups[i].what;
  return text;
}

}  // namespace softmax::device::simt
