#pragma once
// The rules of memory: every access is aligned and within bounds, reads only what was written, and no two that conflict are
// unordered. Findings name lines by numbers of sites: debug information takes more stack than a thread has here.

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/simt/order.hpp"
#include "kernels/device/simt/requests.hpp"
#include "kernels/device/simt/shadow.hpp"
#include "kernels/machine.hpp"

namespace softmax::device::simt {

struct Access {
  Thread& thread;
  std::uintptr_t at;
  std::size_t bytes;
  Op op;
  std::uint16_t site;
  const Stamp* by = nullptr;  // instead of the thread, which started it
};

// A region in bytes.
struct Span {
  std::uintptr_t first, last;  // last: behind it
  std::uintptr_t row_bytes, stride_bytes;
  unsigned shift;  // of its cells
  const Region* region;

  explicit Span(const Region&);
  bool holds(std::uintptr_t at, std::size_t bytes) const {
    const std::uintptr_t offset = at - first;
    return (row_bytes == stride_bytes ? offset : offset % stride_bytes) + bytes <= row_bytes;
  }
};

// Where an access goes.
struct Target {
  bool shared = false;
  std::uint32_t owner = 0;  // of its cells
  unsigned shift = 2;       // of its cells
  bool written_at_first = true, read_only = false;
};

class Checks {
 public:
  void begin();  // of a launch
  // Both throw Fault for an access that must not take place. Without `strict` the first looks up, no more.
  Target locate(const Access&, bool strict) const;
  void check(const Access&, const Target&);
  // The running thread goes on behind its last access.
  void settle();
  // Runs `work`, whose launches may touch nothing but these regions; then, if strict(), every output must be written.
  void within(const std::vector<Region>&, const std::function<void()>& work, bool (*strict)());
  std::vector<std::string> take_findings();

  // Bytes of a load that the block has loaded before.
  std::int64_t redundant(const Block&, const Request&);
  Order order;

 private:
  // A store over another one that nothing orders. Harmless if it stores what stood there.
  struct Overwrite {
    unsigned bytes = 0;  // a bit for each that conflicts
    std::uintptr_t at;
    unsigned char before[16];
    Stamp mine, other;
    Op op;
  };
  std::uint32_t take_serials(std::int64_t count);
  Target in_arena(const Access&, const Block& owner, bool strict) const;
  void check_cell(const Access&, const Target&, Cell&, std::uintptr_t at, const Mark&);
  void remember(const Thread&, Mark& last, std::uint32_t& more, const Mark&);
  void find_race(const Thread&, std::uintptr_t at, Op, const Stamp& mine, const Stamp& other);
  template <class Text>
  void find(std::uint16_t mine, int other, Text text);
  std::string place(const Thread&, std::uintptr_t at) const;
  std::string never_written(const Span&);

  Shadow shadow_;
  std::uint32_t serial_ = 1;  // the next one
  std::uint32_t scope_ = 0;   // owner of all cells outside of shared memory
  std::vector<Span> spans_;
  bool enclosed_ = false;  // within regions
  Overwrite overwrite_{};
  std::set<std::pair<std::uint16_t, int>> found_;  // the two sites of each finding
  std::vector<std::string> findings_;
};

// Stands for the line of a site in a finding.
inline constexpr char kOpen = '\1', kClose = '\2';

}  // namespace softmax::device::simt
