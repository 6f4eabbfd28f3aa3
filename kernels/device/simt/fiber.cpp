#include "kernels/device/simt/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace softmax::device::simt {
namespace {

namespace context = boost::context::detail;
const std::size_t kGuard = std::size_t(sysconf(_SC_PAGESIZE));  // 64 KiB on some machines

char* new_stack(std::size_t bytes) {
  void* memory =
      mmap(nullptr, kGuard + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuard, PROT_NONE) != 0) throw std::bad_alloc();
  return static_cast<char*>(memory) + kGuard;
}

// AddressSanitizer must hear of every change of stack, or it takes a thrown exception for a smashed stack.
void leaving([[maybe_unused]] void** fake, [[maybe_unused]] const void* stack, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake, stack, bytes);
#endif
}
void arrived([[maybe_unused]] void* fake, [[maybe_unused]] const void** from, [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, from, bytes);
#endif
}

}  // namespace

struct Switch {
  static void enter(context::transfer_t from) {
    Fiber& self = *static_cast<Fiber*>(from.data);
    arrived(nullptr, &self.scheduler_stack_, &self.scheduler_stack_bytes_);
    self.scheduler_ = from.fctx;
    self.entry_(self.argument_);
    leaving(nullptr, self.scheduler_stack_, self.scheduler_stack_bytes_);
    context::jump_fcontext(self.scheduler_, nullptr);
  }
};

void Fiber::start(Entry entry, void* argument) {
  if (!stack_) stack_ = new_stack(kStack);
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStack);  // frames of a fiber that was left in its middle
#endif
  entry_ = entry;
  argument_ = argument;
  // Stacks of one size, one behind the other, would share the same few cache sets: start each a few lines further down.
  const std::size_t lines = reinterpret_cast<std::uintptr_t>(stack_) / (kStack + kGuard) % 61;
  context_ = context::make_fcontext(stack_ + kStack - 64 * lines, kStack - 64 * lines, &Switch::enter);
}

void Fiber::resume() {
  void* fake = nullptr;
  leaving(&fake, stack_, kStack);
  context_ = context::jump_fcontext(context_, this).fctx;
  arrived(fake, nullptr, nullptr);
}

void Fiber::suspend() {
  void* fake = nullptr;
  leaving(&fake, scheduler_stack_, scheduler_stack_bytes_);
  scheduler_ = context::jump_fcontext(scheduler_, nullptr).fctx;
  arrived(fake, &scheduler_stack_, &scheduler_stack_bytes_);
}

}  // namespace softmax::device::simt
