// What a thread throws reaches the caller of the launch, and leaves nothing behind that the next launch could notice.
#include <cmath>
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::launch;
namespace cg = cooperative_groups;

struct Oops {
  unsigned thread;
};

enum Trouble { throws, leaves_barrier, leaves_warp, spoils_shared, leaves_grid };
// Before the trouble, the block fills more shared memory than the next launch has, and waits in its middle.
__global__ void trouble(Trouble kind) {
  SHARED(big, float[1024]);
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) big[i] = 1;
  __syncthreads();
  if (kind == throws && threadIdx.x == 37) throw Oops{threadIdx.x};
  if (kind == leaves_barrier && threadIdx.x == 37) return;
  if (kind == leaves_warp && threadIdx.x != 37) __syncwarp();
  if (kind == spoils_shared && threadIdx.x == 37) big[1024] = 1;
  if (kind == leaves_grid && blockIdx.x == 0) return;
  if (kind == leaves_grid) cg::this_grid().sync();
  __syncthreads();
}

// Uses a bit of everything: barrier, warp, poison, canary.
__global__ void healthy(int* out) {
  SHARED(unwritten, float);
  SHARED(value, int[64]);
  const bool poisoned = unwritten != unwritten;
  value[threadIdx.x] = __shfl_xor_sync(0xffffffffu, int(threadIdx.x), 1);
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = poisoned ? value[63 - threadIdx.x] : -1;
}

void expect_healthy() {
  const Unwatched unwatched;
  std::vector<int> out(3 * 64, -2);
  ASSERT_NO_THROW(launch(healthy, {.blocks = 3, .threads = 64}, out.data()));
  for (int i = 0; i < 3 * 64; ++i) ASSERT_EQ(out[std::size_t(i)], (63 - i % 64) ^ 1) << "element " << i;
}

TEST(SimtRecovery, AnExceptionReachesTheCaller) {
  under_every_schedule([] {
    try {
      launch(trouble, {.blocks = 2, .threads = 64}, throws);
      FAIL() << "nothing thrown";
    } catch (const Oops& e) {
      EXPECT_EQ(e.thread, 37u);
    }
    expect_healthy();
  });
}

TEST(SimtRecovery, AFaultLeavesNothingBehind) {
  for (const Trouble kind : {leaves_barrier, leaves_warp, spoils_shared, leaves_grid})
    under_every_schedule([=] {
      EXPECT_THROW(launch(trouble, {.blocks = 2, .threads = 64, .cooperative = true}, kind), Fault)
          << "trouble " << kind;
      expect_healthy();
    });
}

// An arena that a large faulty launch left half used serves a launch of other variables later.
TEST(SimtRecovery, EveryResidentBlockIsFreshAgain) {
  EXPECT_THROW(launch(trouble, {.blocks = 8, .threads = 64, .cooperative = true}, leaves_warp), Fault);
  const Unwatched unwatched;
  std::vector<int> out(8 * 64, -2);
  ASSERT_NO_THROW(launch(healthy, {.blocks = 8, .threads = 64, .cooperative = true}, out.data()));
  for (int i = 0; i < 8 * 64; ++i) ASSERT_EQ(out[std::size_t(i)], (63 - i % 64) ^ 1) << "element " << i;
}

}  // namespace
