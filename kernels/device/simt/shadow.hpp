#pragma once
// What the CPU device remembers of every word of memory: who wrote and read it last, which of its bytes were written.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/device/simt/order.hpp"

namespace softmax::device::simt {

// An access to some bytes of a cell.
struct Mark {
  Stamp stamp;
  unsigned char bytes = 0;  // a bit for each
  bool strong = false;      // atomic or volatile
};

struct Cell {
  std::uint32_t owner = 0;  // the block or launch for which the rest holds
  // Indices of lists, 0: none. Reads, and strong writes, that `read` and `write` do not stand for.
  std::uint32_t more = 0, more_writes = 0;
  unsigned char written = 0;  // a bit for each byte
  Mark write, read;
};

// Cells of 4096 bytes of memory, each of 4 bytes, or fewer where elements are smaller: two threads may write neighbours.
struct Page {
  static constexpr std::uintptr_t kBytes = 4096;
  std::uintptr_t number = 0;
  unsigned shift = 2;
  std::vector<Cell> cells;               // empty until one is needed
  std::vector<std::uint32_t> loaded_by;  // the last block that loaded each two bytes

  Cell& cell(std::uintptr_t address) {
    if (cells.empty()) cells.resize(kBytes >> shift);
    return cells[(address % kBytes) >> shift];
  }
};

class Shadow {
 public:
  // The page of an address, whose cells have at most 1 << shift bytes.
  Page& page(std::uintptr_t address, unsigned shift) {
    const std::uintptr_t number = address / Page::kBytes;
    Page* const recent = recent_[number % kRecent];
    if (recent && recent->number == number && recent->shift <= shift) return *recent;
    return find(number, shift);
  }
  // Makes room if there is much, between two launches.
  void trim();

  // The list of an index, made if there is none.
  std::vector<Mark>& list(std::uint32_t& index);
  void drop(std::uint32_t& index);

 private:
  static constexpr std::size_t kRecent = 256;
  Page& find(std::uintptr_t number, unsigned shift);
  void refine(Page&, unsigned shift);
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  Page* recent_[kRecent] = {};
  std::vector<std::vector<Mark>> lists_ = {{}};
  std::vector<std::uint32_t> free_;
};

}  // namespace softmax::device::simt
