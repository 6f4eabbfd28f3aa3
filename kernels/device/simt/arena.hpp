#pragma once
// The shared memory of one block on the CPU device: poisoned when the block starts and when it ends, with a canary
// behind every variable.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/device/simt/executor.hpp"

namespace softmax::device::simt {

// Memory that nobody wrote reads as NaN under the forward schedule and as 8e37 under the others: fmaxf drops a NaN, so
// a maximum over unwritten words shows only with the second.
inline constexpr unsigned char kLargePoison = 0x7e;
inline constexpr std::size_t kCanaryBytes = 64;
inline constexpr std::size_t kFirst = 128;  // where variables begin; what lies before is a canary too

// Where the variables lie; the same in every block of a launch, so that a cluster can reach into its neighbours'.
class SharedLayout {
 public:
  struct Variable {
    const void* key;
    const char* name;
    std::size_t offset, bytes;
  };
  SharedLayout() = default;
  explicit SharedLayout(std::size_t dynamic) {
    if (dynamic) add(nullptr, "dynamic shared memory", dynamic, 128);
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
    return add(key, name, bytes, alignment);
  }
  const std::vector<Variable>& variables() const { return variables_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t end() const { return end_; }

 private:
  std::size_t add(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
    const std::size_t offset = (end_ + alignment - 1) / alignment * alignment;
    variables_.push_back({key, name, offset, bytes});
    end_ = offset + bytes + kCanaryBytes;
    bytes_ += bytes;
    return offset;
  }
  std::vector<Variable> variables_;
  std::size_t end_ = kFirst, bytes_ = 0, static_bytes_ = 0;
};

class Arena {
 public:
  static constexpr std::size_t kBytes = Limits::kShared + Limits::kStaticShared + (64 << 10);

  void open(const SharedLayout& layout, unsigned char poison) {
    if (!memory_) memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(128, kBytes)));
    // A variable that this block is the first to use lies behind what earlier blocks used, still fresh from here on.
    if (poison != poison_) std::memset(memory_.get(), poison_ = poison, kBytes);
    std::memset(memory_.get(), poison, layout.end());
  }
  // At the block's end. Throws Fault if a canary was written.
  void close(const SharedLayout& layout) {
    for (std::size_t i = kFirst; i-- > 0;)
      if (memory_[i] != poison_)
        throw Fault(std::to_string(kFirst - i) + " bytes before the first shared variable something was written");
    for (const auto& v : layout.variables())
      for (std::size_t i = v.offset + v.bytes; i < v.offset + v.bytes + kCanaryBytes; ++i)
        if (memory_[i] != poison_)
          throw Fault("byte " + std::to_string(i - v.offset) + " of `" + v.name + "` was written, which has " +
                      std::to_string(v.bytes) + " bytes");
    wipe(layout);
  }
  void wipe(const SharedLayout& layout) { std::memset(memory_.get(), poison_, layout.end()); }
  void* at(std::size_t offset) { return memory_.get() + offset; }
  std::size_t offset(const void* address) const {
    return std::size_t(static_cast<const unsigned char*>(address) - memory_.get());
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { std::free(p); }
  };
  std::unique_ptr<unsigned char[], Free> memory_;
  unsigned char poison_ = 0;
};

}  // namespace softmax::device::simt
