#pragma once
// What the CPU device sees of a kernel: every load, store and atomic, counted and checked. The executor tells it where
// threads meet, the machine what memory a launch may touch.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/simt/executor.hpp"
#include "kernels/device/simt/order.hpp"
#include "kernels/device/simt/requests.hpp"
#include "kernels/machine.hpp"

namespace softmax::device::simt {

struct Block;
struct Launch;
struct Thread;

// From the machine.
void set_watch(Watch);
Profile profile();
void run_within(const std::vector<Region>&, const std::function<void()>& work);

// From the executor, of the launch that runs.
namespace trace {
void begin();
void admit(Block&);
// By the current thread, or by a copier that it started, whose accesses are spread over the lanes of a warp.
struct Copier {
  Stamp stamp;
  unsigned lane;
};
void access(std::uintptr_t at, std::size_t bytes, Op, std::uintptr_t pc, const Copier* = nullptr);
// A thread goes on behind a point where others may run: what it did last is settled.
void settle();
void met(Scope, Where);                                                  // the current thread was the last
void met(Meet, unsigned warp, unsigned mask, std::size_t bytes, Where);  // likewise
void fence(Scope);
void release(Knowledge& to);
void acquire(const Knowledge&);
void returned(Thread&);  // after its state says so
// Of a launch that came to its end, and of one that broke a rule: throws Fault if there is anything to report.
void end();
void end(const std::string& fault);
}  // namespace trace

}  // namespace softmax::device::simt
