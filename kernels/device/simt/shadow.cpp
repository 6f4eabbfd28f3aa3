#include "kernels/device/simt/shadow.hpp"

namespace softmax::device::simt {

Page& Shadow::find(std::uintptr_t number, unsigned shift) {
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) {
    page = std::make_unique<Page>();
    page->number = number;
    page->loaded_by.resize(Page::kBytes / 2);
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
    for (std::size_t p = 0; p < parts; ++p) {
      const auto bytes = [&](unsigned char all) {
        return static_cast<unsigned char>(all >> (p << shift) & ((1u << (1u << shift)) - 1));
      };
      Cell part = whole;
      part.written = bytes(part.written);
      part.write.bytes = bytes(part.write.bytes);
      part.read.bytes = bytes(part.read.bytes);
      for (std::uint32_t* index : {&part.more, &part.more_writes}) {
        const std::vector<Mark> marks = *index ? lists_[*index] : std::vector<Mark>{};
        *index = 0;
        for (Mark m : marks)
          if ((m.bytes = bytes(m.bytes)) != 0) list(*index).push_back(m);
      }
      page.cells.push_back(part);
    }
    drop(whole.more);
    drop(whole.more_writes);
  }
}

void Shadow::trim() {
  constexpr std::size_t kMost = 1 << 12;  // 256 MB
  if (pages_.size() < kMost) return;
  pages_.clear();
  for (Page*& p : recent_) p = nullptr;
  lists_ = {{}};
  free_.clear();
}

std::vector<Mark>& Shadow::list(std::uint32_t& index) {
  if (index == 0 && free_.empty()) {
    index = std::uint32_t(lists_.size());
    lists_.emplace_back();
  } else if (index == 0) {
    index = free_.back();
    free_.pop_back();
  }
  return lists_[index];
}

void Shadow::drop(std::uint32_t& index) {
  if (index == 0) return;
  lists_[index].clear();
  free_.push_back(index);
  index = 0;
}

}  // namespace softmax::device::simt
