#pragma once
// The shared memory of one block on the CPU device: poisoned when the block starts, with a gap behind every variable.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/device/simt/executor.hpp"
#include "kernels/machine.hpp"

namespace softmax::device::simt {

inline constexpr std::size_t kGapBytes = 1024;
inline constexpr std::size_t kFirst = 128;  // where variables begin

// Where the variables lie; the same in every block of a launch, so that a cluster can reach into its neighbours'.
class SharedLayout {
 public:
  struct Variable {
    const void* key;
    const char* name;
    std::size_t offset, bytes, granule;  // granule: of an element, at most 4
  };
  SharedLayout() = default;
  explicit SharedLayout(std::size_t dynamic) {
    if (dynamic) add(nullptr, "dynamic shared memory", dynamic, 128, 4);
  }

  // Offset of the variable declared as `key`, placed at its first use.
  std::size_t place(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
    for (const Variable& v : variables_)
      if (v.key == key) return v.offset;
    static_bytes_ += bytes;
    if (static_bytes_ > Limits::kStaticShared)
      throw Fault("more than 48 KiB of shared variables at `" + std::string(name) + "`; take SHARED_DYNAMIC");
    if (bytes_ + bytes > Limits::kShared)
      throw Fault("variables and dynamic memory up to `" + std::string(name) + "` take " +
                  std::to_string(bytes_ + bytes) + " bytes of shared memory; a block has at most " +
                  std::to_string(Limits::kShared));
    return add(key, name, bytes, alignment, std::min<std::size_t>(alignment, 4));
  }
  // The variable that holds an offset, or null.
  const Variable* at(std::size_t offset) const {
    for (const Variable& v : variables_)
      if (offset - v.offset < v.bytes) return &v;
    return nullptr;
  }
  const std::vector<Variable>& variables() const { return variables_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t end() const { return end_; }

 private:
  std::size_t add(const void* key, const char* name, std::size_t bytes, std::size_t alignment, std::size_t granule) {
    const std::size_t offset = (end_ + alignment - 1) / alignment * alignment;
    variables_.push_back({key, name, offset, bytes, granule});
    end_ = offset + bytes + kGapBytes;
    bytes_ += bytes;
    return offset;
  }
  std::vector<Variable> variables_;
  std::size_t end_ = kFirst, bytes_ = 0, static_bytes_ = 0;
};

class Arena {
 public:
  static constexpr std::size_t kBytes = Limits::kShared + Limits::kStaticShared + (64 << 10);

  void open(const SharedLayout& layout) {
    if (!memory_) {
      memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(128, kBytes)));
      std::memset(memory_.get(), kPoison, kBytes);
    }
    wipe(layout);
  }
  // A variable that a block is the first to use lies behind what earlier blocks used, still fresh.
  void wipe(const SharedLayout& layout) { std::memset(memory_.get(), kPoison, layout.end()); }
  void* at(std::size_t offset) { return memory_.get() + offset; }
  bool owns(std::uintptr_t address) const { return address - reinterpret_cast<std::uintptr_t>(memory_.get()) < kBytes; }
  std::size_t offset(const void* address) const {
    return std::size_t(static_cast<const unsigned char*>(address) - memory_.get());
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { std::free(p); }
  };
  std::unique_ptr<unsigned char[], Free> memory_;
};

}  // namespace softmax::device::simt
