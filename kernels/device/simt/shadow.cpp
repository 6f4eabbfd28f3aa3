#include "kernels/device/simt/shadow.hpp"

namespace softmax::device::simt {

Page& Shadow::find(std::uintptr_t number, unsigned shift) {
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) {
    page = std::make_unique<Page>();
    page->number = number;
    page->loaded_by.resize(Page::kBytes / 4);
  }
  if (page->shift > shift) refine(*page, shift);
  return *(recent_[number % kRecent] = page.get());
}

// Takes cells apart, when a variable of smaller elements turns up among others.
void Shadow::refine(Page& page, unsigned shift) {
  const std::size_t parts = std::size_t{1} << (page.shift - shift);
  std::vector<Cell> coarse = std::move(page.cells);
  page.cells.clear();
  page.shift = shift;
  for (Cell& whole : coarse) {
    const std::vector<Mark> more = whole.more ? reads(whole) : std::vector<Mark>{};
    for (std::size_t p = 0; p < parts; ++p) {
      const auto bytes = [&](unsigned char all) {
        return static_cast<unsigned char>(all >> (p << shift) & ((1u << (1u << shift)) - 1));
      };
      Cell part = whole;
      part.more = 0;
      part.written = bytes(part.written);
      part.write.bytes = bytes(part.write.bytes);
      part.read.bytes = bytes(part.read.bytes);
      for (Mark m : more)
        if ((m.bytes = bytes(m.bytes)) != 0) reads(part).push_back(m);
      page.cells.push_back(part);
    }
    drop_reads(whole);
  }
}

void Shadow::trim() {
  constexpr std::size_t kMost = 1 << 12;  // 256 MB
  if (pages_.size() < kMost) return;
  pages_.clear();
  for (Page*& p : recent_) p = nullptr;
  reads_ = {{}};
  free_.clear();
}

std::vector<Mark>& Shadow::reads(Cell& c) {
  if (c.more == 0 && free_.empty()) {
    c.more = std::uint32_t(reads_.size());
    reads_.emplace_back();
  } else if (c.more == 0) {
    c.more = free_.back();
    free_.pop_back();
  }
  return reads_[c.more];
}

void Shadow::drop_reads(Cell& c) {
  if (c.more == 0) return;
  reads_[c.more].clear();
  free_.push_back(c.more);
  c.more = 0;
}

}  // namespace softmax::device::simt
