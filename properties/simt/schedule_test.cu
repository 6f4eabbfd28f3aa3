// The schedule decides in which order threads run that no barrier orders; a right kernel does not notice.
#include <algorithm>
#include <numeric>
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::Schedule;
using softmax::device::launch;
using Order = std::vector<int>;

__global__ void record(int* order, int* next) {
  order[atomicAdd(next, 1)] = int(threadIdx.x);
  __syncthreads();
  order[atomicAdd(next, 1)] = int(threadIdx.x);
}
__global__ void record_blocks(int* order, int* next) {
  if (threadIdx.x == 0) order[atomicAdd(next, 1)] = int(blockIdx.x);
}
__global__ void record_resident(int* order, int* next) {
  order[atomicAdd(next, 1)] = int(blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void add_neighbour(int* out, bool right) {
  SHARED(value, int[64]);
  const unsigned t = threadIdx.x;
  value[t] = int(t) + 1;
  __syncthreads();
  const int sum = value[t] + value[(t + 1) % 64];
  if (right) __syncthreads();  // without it some threads read sums
  value[t] = sum;
  out[t] = sum;
}

Order order(Schedule s, unsigned threads) {
  const Scheduled scheduled(s);
  Order out(2 * threads, -1);
  int next = 0;
  launch(record, {.blocks = 1, .threads = threads}, out.data(), &next);
  // Whoever comes last to a barrier may go straight on; the others follow in the order they had before.
  Order before(out.begin(), out.begin() + threads), after(out.begin() + threads, out.end());
  const int last = before.back();
  EXPECT_EQ(std::count(after.begin(), after.end(), last), 1);
  const Order result = before;
  for (Order* o : {&before, &after}) o->erase(std::remove(o->begin(), o->end(), last), o->end());
  EXPECT_EQ(before, after) << "one order between all barriers";
  return result;
}
Order block_order(Schedule s, unsigned blocks) {
  const Scheduled scheduled(s);
  Order out(blocks, -1);
  int next = 0;
  launch(record_blocks, {.blocks = blocks, .threads = 32}, out.data(), &next);
  return out;
}
Order ascending(int count) {
  Order all(std::size_t(count), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
Order reversed(Order o) { return Order(o.rbegin(), o.rend()); }
Order sorted(Order o) {
  std::sort(o.begin(), o.end());
  return o;
}
bool warps_stay_together(const Order& o) {
  for (std::size_t i = 0; i < o.size(); ++i)
    if (o[i] / 32 != o[i / 32 * 32] / 32) return false;
  return true;
}

TEST(SimtSchedule, OrdersTheThreadsOfABlock) {
  EXPECT_EQ(order(kForward, 100), ascending(100));
  EXPECT_EQ(order(kReverse, 100), reversed(ascending(100)));
  std::vector<Order> seen{order(kForward, 128), order(kReverse, 128)};
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Order o = order(seeded(seed), 128);
    EXPECT_EQ(o, order(seeded(seed), 128)) << "seed " << seed << " is no order of its own";
    EXPECT_EQ(sorted(o), ascending(128));
    EXPECT_EQ(warps_stay_together(o), seed % 2 == 0) << "seed " << seed;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), o), 0) << "seed " << seed << " brings nothing new";
    seen.push_back(o);
  }
}

TEST(SimtSchedule, OrdersTheBlocksOfAGrid) {
  EXPECT_EQ(block_order(kForward, 20), ascending(20));
  EXPECT_EQ(block_order(kReverse, 20), reversed(ascending(20)));
  int starts_elsewhere = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Order o = block_order(seeded(seed), 20);
    EXPECT_EQ(sorted(o), ascending(20));
    starts_elsewhere += o != ascending(20);
  }
  EXPECT_GE(starts_elsewhere, 4);
}

TEST(SimtSchedule, OrdersBlocksThatAreResidentTogether) {
  const Scheduled scheduled(kReverse);
  Order out(4 * 16, -1);
  int next = 0;
  launch(record_resident, {.blocks = 4, .threads = 16, .cooperative = true}, out.data(), &next);
  EXPECT_EQ(out, reversed(ascending(4 * 16)));
}

TEST(SimtSchedule, ShowsAMissingBarrier) {
  const Unwatched unwatched;
  const auto result = [](Schedule s, bool right) {
    const Scheduled scheduled(s);
    std::vector<int> out(64, -1);
    launch(add_neighbour, {.blocks = 1, .threads = 64}, out.data(), right);
    return out;
  };
  EXPECT_NE(result(kForward, false), result(kReverse, false));
  for (const Schedule& s : {kForward, kReverse, seeded(1), seeded(2), seeded(3)}) {
    EXPECT_EQ(result(s, true), result(kForward, true)) << to_string(s);
    EXPECT_NE(result(s, false), result(s, true)) << to_string(s);
  }
}

}  // namespace
