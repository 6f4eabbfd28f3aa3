#pragma once
// One CUDA thread of the CPU device: a function that can stop in its middle and go on later, on a stack of its own.

#include <cstddef>
#include <cstdint>

namespace softmax::device::simt {

class Fiber {
 public:
  using Entry = void (*)(void*);

  // Makes the next resume() call entry(argument). A fiber that was left in its middle forgets where it was.
  void start(Entry entry, void* argument);
  // From the scheduler: runs the fiber until it suspends or its entry returns.
  void resume();
  // From the fiber: back to the scheduler.
  void suspend();
  // Does an address lie on its stack?
  bool owns(std::uintptr_t address) const { return address - reinterpret_cast<std::uintptr_t>(stack_) < kStack; }

 private:
  friend struct Switch;
  static constexpr std::size_t kStack = 64 << 10;
  void *context_ = nullptr, *scheduler_ = nullptr;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  char* stack_ = nullptr;  // lowest address, above a page that nobody may touch; kept for the fiber's whole life
  const void* scheduler_stack_ = nullptr;  // what AddressSanitizer wants to know
  std::size_t scheduler_stack_bytes_ = 0;
};

}  // namespace softmax::device::simt
