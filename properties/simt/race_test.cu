// Races that are easy to miss, and orders that are easy to forget. properties/faults has the plain ones.
#include <vector>

#include "properties/simt/simt.hpp"

namespace {
using namespace softmax::simt_test;
using softmax::device::Grid;
using softmax::device::launch;

// What a launch reports under every schedule: the same kind of thing each time, or nothing.
template <class Kernel, class... Args>
void expect_race(bool race, Kernel kernel, const Grid& grid, Args... args) {
  under_every_schedule([&] {
    const std::string said = report([&] { launch(kernel, grid, args...); });
    EXPECT_TRUE(race ? said.starts_with("race: ") : said == "nothing thrown") << said;
  });
}

__global__ void store_vectors(float4* out, bool alike) { out[0] = {1, alike ? 2.0f : float(threadIdx.x), 0, 0}; }
TEST(SimtRace, AVectorRacesWithWhicheverPartDiffers) {
  float4 out;
  expect_race(true, store_vectors, {.blocks = 1, .threads = 2}, &out, false);
  expect_race(false, store_vectors, {.blocks = 1, .threads = 2}, &out, true);
}

__global__ void store_bytes(unsigned char* out, unsigned apart) {
  if (threadIdx.x < 2) out[threadIdx.x * apart] = static_cast<unsigned char>(threadIdx.x + 1);
  if (threadIdx.x == 2) out[3] = out[0];
}
__global__ void store_neighbours(short* out) { out[threadIdx.x] = short(threadIdx.x); }
TEST(SimtRace, BytesOfAWordAreApart) {
  std::vector<unsigned char> bytes(64);
  std::vector<short> shorts(64);
  expect_race(false, store_bytes, {.blocks = 1, .threads = 2}, bytes.data(), 1u);
  expect_race(true, store_bytes, {.blocks = 1, .threads = 2}, bytes.data(), 0u);
  expect_race(true, store_bytes, {.blocks = 1, .threads = 3}, bytes.data(), 1u);  // the third reads the first's
  expect_race(false, store_neighbours, {.blocks = 1, .threads = 64}, shorts.data());
}

__global__ void read_plainly_then_strongly(int* word) {
  if (threadIdx.x == 0) {
    const int plain = *word, strong = *const_cast<volatile int*>(word);
    word[1] = plain + strong;
  }
  if (threadIdx.x == 32) atomicAdd(word, 1);
}
TEST(SimtRace, AStrongReadDoesNotHideAPlainOne) {
  int words[2] = {};
  expect_race(true, read_plainly_then_strongly, {.blocks = 1, .threads = 64}, words);
}

// Each block releases and acquires on a word of its own: nothing passes between blocks.
__global__ void talk_to_oneself(int* word, bool aloud) {
  SHARED(flag, int);
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) *word = 1;
    __threadfence();
    if (aloud) atomicAdd(&flag, 1);
    __threadfence();
    if (blockIdx.x != 0) word[blockIdx.x] = *word;
  }
}
TEST(SimtRace, AFlagInSharedMemoryIsTheBlocksOwn) {
  int words[3] = {};
  expect_race(true, talk_to_oneself, {.blocks = 3, .threads = 32}, words, true);
  expect_race(true, talk_to_oneself, {.blocks = 3, .threads = 32}, words, false);
}

// Lane 0 tells lane 1, which tells lane 2; or lane 2 hears of nobody.
__global__ void pass_on(int* out, bool linked) {
  SHARED(word, int);
  const unsigned lane = threadIdx.x;
  if (lane == 0) word = 1;
  __syncthreads();
  if (lane == 0) word = 7;
  if (lane < 2) __syncwarp(3);
  if (lane == 1 || lane == 2) __syncwarp(6);
  if (lane == (linked ? 2 : 3)) *out = word;
}
TEST(SimtRace, WarpBarriersAreTransitive) {
  int out = 0;
  expect_race(false, pass_on, {.blocks = 1, .threads = 4}, &out, true);
  EXPECT_EQ(out, 7);
  expect_race(true, pass_on, {.blocks = 1, .threads = 4}, &out, false);
}

__global__ void many_read_one_writes(int* out, bool wait) {
  SHARED(word, int);
  if (threadIdx.x == 0) word = 1;
  __syncthreads();
  const int seen = word;
  if (wait) __syncthreads();
  if (threadIdx.x == 40) word = 2;
  out[threadIdx.x] = seen;
}
TEST(SimtRace, EveryReaderCounts) {
  std::vector<int> out(1024);
  expect_race(false, many_read_one_writes, {.blocks = 2, .threads = 64}, out.data(), true);
  expect_race(true, many_read_one_writes, {.blocks = 1, .threads = 64}, out.data(), false);
}

// Two launches of one caller follow each other: no race, whoever wrote.
__global__ void add_one(int* word) {
  if (threadIdx.x == blockIdx.x) *word += 1;
}
TEST(SimtRace, LaunchesFollowEachOther) {
  int word = 0;
  for (int i = 0; i < 3; ++i) launch(add_one, {.blocks = 1, .threads = 32}, &word);
  EXPECT_EQ(word, 3);
  expect_race(true, add_one, {.blocks = 2, .threads = 32}, &word);
}

// Every block takes a ticket between two fences, and so knows all blocks before it: neither time nor memory may grow
// with the square of their number.
__global__ void take_turns(int* sum, unsigned* turn) {
  if (threadIdx.x != 0) return;
  __threadfence();
  while (atomicAdd(turn, 0u) != blockIdx.x) __nanosleep(10);
  __threadfence();
  *sum += 1;
  __threadfence();
  atomicAdd(turn, 1u);
}
TEST(SimtRace, ManyBlocksPassOnWhatTheyKnow) {
  const Scheduled forward(kForward);
  int sum = 0;
  unsigned turn = 0;
  launch(take_turns, {.blocks = 3000, .threads = 32}, &sum, &turn);
  EXPECT_EQ(sum, 3000);
}

// Atomics do not conflict with each other; who reads plainly conflicts with each that it cannot know of.
__global__ void last_reads_plainly(unsigned* words, bool fences) {
  if (threadIdx.x != 0) return;
  atomicMax(&words[1], blockIdx.x);
  if (fences) __threadfence();
  if (atomicAdd(&words[0], 1u) != gridDim.x - 1) return;
  if (fences) __threadfence();
  words[2] = words[1];
}
TEST(SimtRace, AnAtomicDoesNotHideThoseBefore) {
  for (const bool fences : {false, true})
    under_every_schedule([=] {
      unsigned words[3] = {};
      const std::string said = report([&] { launch(last_reads_plainly, {.blocks = 3, .threads = 32}, words, fences); });
      EXPECT_EQ(said.substr(0, 6), fences ? "nothin" : "race: ") << said;
    });
}

// A thousand threads that fence and count themselves.
__global__ void all_fence(int* data, unsigned* count) {
  data[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  __threadfence();
  atomicAdd(count, 1u);
}
TEST(SimtRace, EveryThreadMayFence) {
  const Scheduled forward(kForward);
  std::vector<int> data(4 * 1024);
  unsigned count = 0;
  launch(all_fence, {.blocks = 4, .threads = 1024}, data.data(), &count);
  EXPECT_EQ(count, 4u * 1024);
}

struct Pair {
  short a, b;
};
__global__ void clear_and_copy(Pair* pairs, int* out) {
  SHARED(words, int[32]);
  if (threadIdx.x == 0) memset(words, 0, sizeof words);
  __syncthreads();
  const Pair pair = pairs[threadIdx.x];
  pairs[threadIdx.x + 32] = pair;
  memcpy(&out[threadIdx.x], &words[threadIdx.x], sizeof(int));
}
TEST(SimtRace, CopiesOfAnyKindAreSeen) {
  std::vector<short> shorts(2 * 64 + 1);
  std::vector<int> out(32, 1);
  // At an odd multiple of two bytes: no fault of a struct of shorts.
  expect_race(false, clear_and_copy, {.blocks = 1, .threads = 32}, reinterpret_cast<Pair*>(shorts.data() + 1),
              out.data());
  EXPECT_EQ(out, std::vector<int>(32, 0));
}

}  // namespace
