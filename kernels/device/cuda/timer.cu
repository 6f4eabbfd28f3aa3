#include <algorithm>
#include <string>

#include "kernels/device/cuda/driver.hpp"
#include "kernels/device/cuda/timer.hpp"

namespace softmax::device::cuda {
namespace {

constexpr std::size_t kVector = sizeof(uint4);

// One 16-byte vector a thread in a huge grid: the fastest way to copy that a kernel has on an H200. The thread behind the
// last vector copies what is left, byte by byte.
__global__ void copy_vectors(char* to, const char* from, std::size_t bytes) {
  const std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x, vectors = bytes / kVector;
  if (i < vectors) reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  if (i == vectors)
    for (std::size_t b = vectors * kVector; b < bytes; ++b) to[b] = from[b];
}

// Four vectors a thread, all loaded before the first is stored: ahead of the other while the grid is small.
__global__ void copy_batches(char* to, const char* from, std::size_t bytes) {
  constexpr int kBatch = 4;
  const std::size_t vectors = bytes / kVector, first = blockIdx.x * std::size_t(blockDim.x) * kBatch + threadIdx.x;
  uint4 batch[kBatch];
  for (int u = 0; u < kBatch; ++u)
    if (const std::size_t i = first + u * blockDim.x; i < vectors) batch[u] = reinterpret_cast<const uint4*>(from)[i];
  for (int u = 0; u < kBatch; ++u)
    if (const std::size_t i = first + u * blockDim.x; i < vectors) reinterpret_cast<uint4*>(to)[i] = batch[u];
  if (blockIdx.x == 0 && threadIdx.x == 0)
    for (std::size_t b = vectors * kVector; b < bytes; ++b) to[b] = from[b];
}

// Adds up, so that no load can be left out; what it writes depends on all of them.
__global__ void read_vectors(const uint4* from, std::size_t vectors, unsigned* sink) {
  unsigned bits = 0;
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
#pragma unroll 8
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < vectors; i += step) {
    const uint4 v = from[i];
    bits ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (bits == 0x9e3779b9u) *sink = bits;
}

__global__ void write_vectors(uint4* to, std::size_t vectors) {
  const std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x;
  const auto bits = static_cast<unsigned>(i);
  if (i < vectors) to[i] = {bits, ~bits, bits * 0x9e3779b9u, 1};
}

__global__ void do_nothing() {}

__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void spin(unsigned long long ns) {
  for (const unsigned long long end = now() + ns; now() < end;) __nanosleep(200);
}

// Time and clock cycles of multiprocessor 0, whose counter is its own.
struct Stamp {
  unsigned long long ns, cycles;
};
__global__ void stamp(Stamp* to) {
  unsigned processor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
  if (processor == 0) *to = {now(), static_cast<unsigned long long>(clock64())};
}

unsigned blocks(std::size_t items, unsigned each) {
  return unsigned(std::max<std::size_t>(1, (items + each - 1) / each));
}

class Graph {
 public:
  Graph(cudaStream_t stream, const Work& launch, const Timing& t) {
    SOFTMAX_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    try {
      for (int i = 0; i < t.launches; ++i) launch(i % t.sets);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);  // or the stream stays unusable
      if (graph_) cudaGraphDestroy(graph_);
      cudaGetLastError();
      throw;
    }
    try {
      SOFTMAX_CUDA_CHECK(cudaStreamEndCapture(stream, &graph_));
      SOFTMAX_CUDA_CHECK(cudaGraphInstantiate(&exec_, graph_, 0));
      SOFTMAX_CUDA_CHECK(cudaGraphUpload(exec_, stream));
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~Graph() { destroy(); }
  Graph(const Graph&) = delete;
  void launch(cudaStream_t stream) { SOFTMAX_CUDA_CHECK(cudaGraphLaunch(exec_, stream)); }

 private:
  void destroy() {
    if (exec_) cudaGraphExecDestroy(exec_);
    if (graph_) cudaGraphDestroy(graph_);
  }
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace

struct Timer::Event {
  cudaEvent_t event = nullptr;
  Event() { SOFTMAX_CUDA_CHECK(cudaEventCreate(&event)); }
  ~Event() { cudaEventDestroy(event); }
  Event(const Event&) = delete;
};

Memory allocate_bytes(std::size_t bytes) {
  void* p = nullptr;
  const cudaError_t error = cudaMalloc(&p, std::max<std::size_t>(bytes, 1));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    SOFTMAX_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    throw OutOfMemory("out of memory: asked for " + std::to_string(bytes) + " bytes, " + std::to_string(free) +
                      " are free on the GPU");
  }
  SOFTMAX_CUDA_CHECK(error);
  return Memory(p);
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  SOFTMAX_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

// The stream waits for the default one and the other way round, so that plain copies and fills stay in order with it.
Timer::Timer()
    : sink_(allocate_bytes(sizeof(unsigned))),
      stamps_(allocate_bytes(2 * sizeof(Stamp))),
      processors_(attribute(cudaDevAttrMultiProcessorCount)),
      flush_bytes_(2 * std::size_t(attribute(cudaDevAttrL2CacheSize))) {
  SOFTMAX_CUDA_CHECK(cudaStreamCreate(&stream_));
}
Timer::~Timer() { cudaStreamDestroy(stream_); }

// All samples are enqueued before the first is waited for: emptying the cache, or else a kernel that waits, takes the
// GPU longer than the host needs to enqueue the next launch, so no launch waits for the host.
Batch Timer::time(const Work& launch, int samples, const Timing& t) {
  constexpr int kAhead = 128;              // samples; a stream holds about a thousand pending commands
  constexpr std::size_t kLong = 64 << 20;  // of a flush: tens of microseconds
  constexpr double kEnqueue = 12e-6;       // the host's time for a sample
  while (int(events_.size()) < 2 * samples) events_.push_back(std::make_unique<Event>());
  const bool flushed = t.mode == Mode::cold && t.flush != Flush::none;
  std::optional<Graph> graph;
  if (in_graph(t.mode)) {
    graph.emplace(stream_, launch, t);
    graph->launch(stream_);  // not timed: the first replay of a graph is slower, and the host gets ahead
  }
  auto* const stamps = static_cast<Stamp*>(stamps_.get());
  SOFTMAX_CUDA_CHECK(cudaMemsetAsync(stamps, 0, 2 * sizeof(Stamp), stream_));  // nobody need be on multiprocessor 0
  stamp<<<4 * processors_, 32, 0, stream_>>>(stamps);
  for (int i = 0; i < samples; ++i) {
    if (flushed) empty_cache(t.flush, i);
    if (!graph && (!flushed || flush_bytes_ < kLong) && i % kAhead == 0) hold(kEnqueue * std::min(kAhead, samples - i));
    SOFTMAX_CUDA_CHECK(cudaEventRecord(events_[std::size_t(2 * i)]->event, stream_));
    graph ? graph->launch(stream_) : launch(0);
    SOFTMAX_CUDA_CHECK(cudaEventRecord(events_[std::size_t(2 * i + 1)]->event, stream_));
  }
  stamp<<<4 * processors_, 32, 0, stream_>>>(stamps + 1);
  SOFTMAX_CUDA_CHECK(cudaGetLastError());
  Batch batch;
  batch.throttle_reasons = driver().throttle_reasons();  // while the GPU is at work
  SOFTMAX_CUDA_CHECK(cudaStreamSynchronize(stream_));
  for (int i = 0; i < samples; ++i) {
    float ms = 0;
    SOFTMAX_CUDA_CHECK(
        cudaEventElapsedTime(&ms, events_[std::size_t(2 * i)]->event, events_[std::size_t(2 * i + 1)]->event));
    batch.seconds.push_back(ms * 1e-3 / (graph ? t.launches : 1));
  }
  Stamp at[2] = {};
  SOFTMAX_CUDA_CHECK(cudaMemcpy(at, stamps, sizeof at, cudaMemcpyDeviceToHost));
  // The timer ticks once a microsecond.
  if (at[0].ns > 0 && at[1].ns > at[0].ns + 200'000 && at[1].cycles > at[0].cycles) {
    batch.sm_cycles = double(at[1].cycles - at[0].cycles);
    batch.sm_seconds = double(at[1].ns - at[0].ns) * 1e-9;
  }
  return batch;
}

void Timer::empty_cache(Flush how, int sample) {
  if (!flush_) flush_ = allocate_bytes(flush_bytes_);
  if (how == Flush::memset) return SOFTMAX_CUDA_CHECK(cudaMemsetAsync(flush_.get(), sample, flush_bytes_, stream_));
  read(flush_.get(), flush_bytes_);
}

void Timer::hold(double seconds) { spin<<<1, 1, 0, stream_>>>(static_cast<unsigned long long>(seconds * 1e9)); }

void Timer::copy(int way, void* to, const void* from, std::size_t bytes) {
  auto* const out = static_cast<char*>(to);
  const auto* const in = static_cast<const char*>(from);
  if (way == Machine::kDriverCopy)
    return SOFTMAX_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  if (way == 0)
    copy_vectors<<<blocks(bytes / kVector + 1, 512), 512, 0, stream_>>>(out, in, bytes);
  else
    copy_batches<<<blocks(bytes / kVector, 4 * 256), 256, 0, stream_>>>(out, in, bytes);
  SOFTMAX_CUDA_CHECK(cudaGetLastError());
}

void Timer::read(const void* from, std::size_t bytes) {
  read_vectors<<<8 * processors_, 256, 0, stream_>>>(static_cast<const uint4*>(from), bytes / kVector,
                                                     static_cast<unsigned*>(sink_.get()));
  SOFTMAX_CUDA_CHECK(cudaGetLastError());
}

void Timer::write(void* to, std::size_t bytes) {
  write_vectors<<<blocks(bytes / kVector, 512), 512, 0, stream_>>>(static_cast<uint4*>(to), bytes / kVector);
  SOFTMAX_CUDA_CHECK(cudaGetLastError());
}

void Timer::nothing() {
  do_nothing<<<1, 32, 0, stream_>>>();
  SOFTMAX_CUDA_CHECK(cudaGetLastError());
}

}  // namespace softmax::device::cuda
