// Launches that wait, for each other or for room, beside others on a GPU: streams, graphs, a kernel that does not go, launches
// that begin before the one ahead ends. A deadlock stops the program.

#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "properties/harness.hpp"

namespace softmax::properties {

cudaError_t hold_multiprocessors(int blocks, const int* go, int* here, cudaStream_t stream);

namespace {

using namespace std::chrono_literals;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// Stops the program, "Alarm clock", unless it goes in time: nobody can end a launch that waits for ever.
struct Watchdog {
  Watchdog() { alarm(20); }
  ~Watchdog() { alarm(0); }
};

// Not ordered with the default stream.
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  bool idle() const {
    const bool done = cudaStreamQuery(stream_) == cudaSuccess;
    cudaGetLastError();  // "not ready" is no error of the next call
    return done;
  }

 private:
  cudaStream_t stream_ = nullptr;
};

class Graph {
 public:
  Graph(const Stream& stream, const std::function<void()>& launches) {
    cudaGraph_t graph;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    launches();
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&graph_, graph, 0));
    cudaGraphDestroy(graph);
  }
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  void launch(const Stream& stream) const { check(cudaGraphLaunch(graph_, stream)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

const Kernel* on_gpu(int version) {
  for (const Kernel* k : kernels())
    if (k->version() == version && !k->machine().simulated()) return k;
  return nullptr;
}

// Multiprocessors held until it lets go.
class Hog {
 public:
  explicit Hog(int blocks) {
    check(cudaHostAlloc(&flags_, sizeof(int) * std::size_t(blocks + 1), cudaHostAllocMapped));
    std::fill_n(flags_, blocks + 1, 0);
    check(hold_multiprocessors(blocks, flags_, flags_ + 1, stream_));
    const volatile int* const here = flags_ + 1;
    while (std::count(here, here + blocks, 1) < blocks) std::this_thread::yield();
  }
  ~Hog() {
    let_go();
    cudaStreamSynchronize(stream_);
    cudaFreeHost(flags_);
  }
  Hog(const Hog&) = delete;
  void let_go() { *const_cast<volatile int*>(flags_) = 1; }
  bool there() const { return !stream_.idle(); }

 private:
  Stream stream_;
  int* flags_ = nullptr;
};

// V11 with blocks of which a multiprocessor holds one. Each launch takes a row of its own.
class GridGpu : public testing::Test {
 protected:
  static constexpr std::int64_t kLaunches = 200, kCols = 1 << 17;
  static constexpr std::size_t kRow = kCols * sizeof(float);

  void SetUp() override {
    kernel_ = on_gpu(11);
    ASSERT_TRUE(kernel_) << "built without CUDA";
    SKIP_IF_UNAVAILABLE(*kernel_);
    check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, 0));
    Hog(1).let_go();  // its code is there from now on; loading it later might wait for an idle GPU
  }

  // What one stream works on, and what it must become: what the same blocks make of it without company.
  struct Side {
    Side(const Kernel& k, std::uint64_t seed, int blocks, int most = 0)
        : kernel(k),
          in(k.machine(), kLaunches * kRow),
          out(k.machine(), in.bytes()),
          want(k.machine(), in.bytes()),
          workspace(k.machine(), std::size_t(k.workspace({}))) {
      problem = {.rows = 1, .cols = kCols, .in_stride = kCols, .out_stride = kCols, .plan = {1024, 8, 0, blocks}};
      problem.max_blocks = most;
      problem.workspace = workspace.data();
      k.machine().fill_noise(in.data(), std::size_t(kLaunches * kCols), seed);
      k.machine().fill(workspace.data(), 0, workspace.bytes());
      for (int i = 0; i < kLaunches; ++i) launch(i, want);
      problem.stream = stream;
      k.machine().synchronize();
      for (const double sum : k.machine().row_sums(want.data(), {kLaunches, kCols, kCols})) EXPECT_NEAR(sum, 1, 1e-4);
    }
    void launch(std::int64_t i, Buffer& to) {
      problem.in = in.floats() + i * kCols;
      problem.out = to.floats() + i * kCols;
      kernel.launch(problem);
    }
    void launch(std::int64_t i) { launch(i, out); }
    void expect_right(std::int64_t launches = kLaunches) {
      EXPECT_TRUE(kernel.machine().equal(out.data(), want.data(), std::size_t(launches) * kRow));
      EXPECT_EQ(workspace.damage(), "");
      out.poison();
      kernel.machine().synchronize();
    }

    const Kernel& kernel;
    Stream stream;
    Buffer in, out, want, workspace;
    Problem problem;
  };

  const Kernel* kernel_ = nullptr;
  int processors_ = 0;
};

TEST_F(GridGpu, two_streams_that_each_want_the_whole_card) {
  Side a(*kernel_, 1, processors_), b(*kernel_, 2, processors_);
  const Watchdog dog;
  for (int i = 0; i < kLaunches; ++i)
    for (Side* side : {&a, &b}) side->launch(i);
  kernel_->machine().synchronize();
  a.expect_right();
  b.expect_right();
}

TEST_F(GridGpu, two_graphs_at_the_same_time) {
  Side a(*kernel_, 1, processors_), b(*kernel_, 2, (processors_ + 1) / 2 + 1);
  const auto all = [](Side& side) {
    return [&side] {
      for (int i = 0; i < kLaunches; ++i) side.launch(i);
    };
  };
  const Graph of_a(a.stream, all(a)), of_b(b.stream, all(b));
  const Watchdog dog;
  for (int time = 0; time < 5; ++time) {
    for (int i = 0; i < 10; ++i) {
      of_a.launch(a.stream);
      of_b.launch(b.stream);
    }
    kernel_->machine().synchronize();
    a.expect_right();
    b.expect_right();
  }
}

TEST_F(GridGpu, waits_for_a_kernel_that_leaves_no_room) {
  Side side(*kernel_, 1, processors_);
  const Watchdog dog;
  for (const int held : {processors_ - 1, processors_, 1}) {
    Hog hog(held);
    for (int i = 0; i < 3; ++i) side.launch(i);
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(side.stream.idle()) << "there was room for all blocks beside " << held;
    hog.let_go();
    check(cudaStreamSynchronize(side.stream));
    side.expect_right(3);
  }
}

TEST_F(GridGpu, works_beside_a_kernel_that_stays) {
  const int held = processors_ / 2, most = processors_ - held;
  Side side(*kernel_, 1, most, most);
  const Watchdog dog;
  Hog hog(held);
  for (int i = 0; i < kLaunches; ++i) side.launch(i);
  const auto late = std::chrono::steady_clock::now() + 10s;
  while (!side.stream.idle() && std::chrono::steady_clock::now() < late) std::this_thread::yield();
  EXPECT_TRUE(side.stream.idle()) << most << " blocks do not fit beside " << held << " held multiprocessors";
  EXPECT_TRUE(hog.there());
  hog.let_go();
  check(cudaStreamSynchronize(side.stream));
  side.expect_right();
}

// Each launch reads what the one ahead wrote, which was a NaN before; with Problem::overlap it begins early.
// Few rows leave it room beside the one ahead, and then it asks L2 for its input before it waits.
class OverlapGpu : public testing::TestWithParam<std::tuple<int, bool>> {};
TEST_P(OverlapGpu, a_chain_of_launches_keeps_its_order) {
  const auto [version, few] = GetParam();
  const Kernel* const kernel = on_gpu(version);
  ASSERT_TRUE(kernel) << "built without CUDA";
  SKIP_IF_UNAVAILABLE(*kernel);
  Machine& machine = kernel->machine();
  constexpr std::int64_t kSteps = 100;
  const std::int64_t cols = version == 8 ? 1000 : version == 9 ? 8000 : 100000, rows = few ? 2 : 1600000 / cols;
  const std::size_t bytes = std::size_t(rows * cols) * sizeof(float);
  Buffer plain(machine, (kSteps + 1) * bytes), early(machine, plain.bytes());
  Problem p{.rows = rows, .cols = cols, .in_stride = cols, .out_stride = cols};
  const Buffer workspace(machine, std::size_t(kernel->workspace(p)));
  machine.fill(workspace.data(), 0, workspace.bytes());
  p.workspace = workspace.data();
  const Stream stream;
  p.stream = stream;
  const auto chain = [&](const Buffer& steps) {
    for (std::int64_t i = 0; i < kSteps; ++i) {
      p.in = steps.floats() + i * rows * cols;
      p.out = steps.floats() + (i + 1) * rows * cols;
      kernel->launch(p);
    }
  };
  const auto refill = [&](Buffer& steps) {
    machine.synchronize();
    steps.poison();
    machine.fill_noise(steps.data(), std::size_t(rows * cols), 1);
    machine.synchronize();
  };
  const Watchdog dog;
  refill(plain);
  chain(plain);
  machine.synchronize();
  for (const double sum : machine.row_sums(plain.floats() + kSteps * rows * cols, {rows, cols, cols}))
    ASSERT_NEAR(sum, 1, 1e-4);
  p.overlap = true;
  refill(early);
  chain(early);
  machine.synchronize();
  EXPECT_TRUE(machine.equal(plain.data(), early.data(), plain.bytes()));
  const Graph graph(stream, [&] { chain(early); });
  for (int time = 0; time < 3; ++time) {
    refill(early);
    graph.launch(stream);
    machine.synchronize();
    EXPECT_TRUE(machine.equal(plain.data(), early.data(), plain.bytes())) << "in a graph";
  }
}
INSTANTIATE_TEST_SUITE_P(All, OverlapGpu, testing::Combine(testing::Values(0, 8, 9, 10, 11, 12), testing::Bool()),
                         [](const auto& info) {
                           const Kernel* const kernel = on_gpu(std::get<0>(info.param));
                           return (kernel ? test_name(*kernel) : "none" + std::to_string(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_few_rows" : "");
                         });

}  // namespace
}  // namespace softmax::properties
