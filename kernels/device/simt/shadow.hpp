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
  std::uint32_t owner = 0;    // the block or launch for which the rest holds
  std::uint32_t more = 0;     // index of a list of further reads, 0: none
  unsigned char written = 0;  // a bit for each byte
  Mark write, read;
};

// Cells of 4096 bytes of memory, each of 4 bytes, or fewer where elements are smaller: two threads may write neighbours.
struct Page {
  static constexpr std::uintptr_t kBytes = 4096;
  std::uintptr_t number = 0;
  unsigned shift = 2;
  std::vector<Cell> cells;               // empty until one is needed
  std::vector<std::uint32_t> loaded_by;  // the last block that loaded each word

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

  // Further reads of a cell.
  std::vector<Mark>& reads(Cell&);
  void drop_reads(Cell&);

 private:
  static constexpr std::size_t kRecent = 256;
  Page& find(std::uintptr_t number, unsigned shift);
  void refine(Page&, unsigned shift);
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  Page* recent_[kRecent] = {};
  std::vector<std::vector<Mark>> reads_ = {{}};
  std::vector<std::uint32_t> free_;
};

}  // namespace softmax::device::simt
