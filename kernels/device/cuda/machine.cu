#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "kernels/device/cuda/counters.hpp"
#include "kernels/device/cuda/driver.hpp"
#include "kernels/device/cuda/timer.hpp"
#include "kernels/device/cuda/words.hpp"
#include "kernels/input.hpp"
#include "kernels/narrow.hpp"

namespace softmax::device {
namespace cuda {
namespace {

// Memory of a type: floats or the bits of something narrower.
__device__ void store(float* to, DataType, float x) { *to = x; }
__device__ void store(std::uint16_t* to, DataType type, float x) {
  *to = type == DataType::fp16 ? to_fp16(x) : to_bf16(x);
}
__device__ float load(float x, DataType) { return x; }
__device__ float load(std::uint16_t x, DataType type) { return type == DataType::fp16 ? from_fp16(x) : from_bf16(x); }

template <class T>
__global__ void fill_noise(T* to, std::size_t count, std::uint64_t seed, DataType type) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count;
       i += std::size_t(gridDim.x) * blockDim.x)
    store(to + i, type, noise(seed, i));
}

// One block a row at a time; doubles throughout, so its own error is far below any bound that is checked with it.
template <class T>
__global__ void sum_rows(const T* matrix, double* sums, Rows m, DataType type) {
  __shared__ double warps[32];
  for (std::int64_t row = blockIdx.x; row < m.rows; row += gridDim.x) {
    double sum = 0;
    for (std::int64_t i = threadIdx.x; i < m.cols; i += blockDim.x) sum += load(matrix[row * m.stride + i], type);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned w = 1; w < blockDim.x / 32; ++w) sum += warps[w];
      sums[row] = sum;
    }
    __syncthreads();
  }
}

// One block a row at a time; `threads` may be more or fewer than the block has.
__global__ void count_rescales(const float* matrix, int* most, Rows m, int threads) {
  __shared__ int row_most;
  for (std::int64_t row = blockIdx.x; row < m.rows; row += gridDim.x) {
    if (threadIdx.x == 0) row_most = 0;
    __syncthreads();
    for (std::int64_t t = threadIdx.x; t < threads; t += blockDim.x) {
      int rises = 0;
      float max = -INFINITY;
      for (std::int64_t i = t; i < m.cols; i += threads)
        if (const float x = matrix[row * m.stride + i]; x > max) {
          rises += max != -INFINITY;
          max = x;
        }
      atomicMax(&row_most, rises);
    }
    __syncthreads();
    if (threadIdx.x == 0) most[row] = row_most;
    __syncthreads();
  }
}

__global__ void compare_bytes(const unsigned char* a, const unsigned char* b, std::size_t bytes, int* differ) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < bytes;
       i += std::size_t(gridDim.x) * blockDim.x)
    if (a[i] != b[i]) *differ = 1;
}

struct LastLaunch {
  const void* function = nullptr;
  Grid grid;
};
thread_local LastLaunch last;

std::string version(int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); }

// "580.159.04" out of what the kernel module says of itself; the runtime knows only the CUDA version that a driver speaks.
std::string driver_version() {
  std::ifstream module("/proc/driver/nvidia/version");
  for (std::string word; module >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  return "unknown";
}

class Gpu final : public Machine {
 public:
  std::string_view id() const override { return "gpu"; }
  std::string name() const override {
    if (!unavailable().empty()) return "no GPU";
    cudaDeviceProp properties;
    SOFTMAX_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    return properties.name;
  }
  std::string unavailable() const override {
    static const std::string why = [] {
      int count = 0;
      const cudaError_t error = cudaGetDeviceCount(&count);
      cudaGetLastError();
      if (error != cudaSuccess) return std::string("no usable GPU: ") + cudaGetErrorString(error);
      if (count == 0) return std::string("no GPU in this machine");
      cudaFuncAttributes attributes;
      if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(sum_rows<float>)) == cudaSuccess)
        return std::string();
      cudaGetLastError();
      return "this program was not built for a GPU of compute capability " +
             std::to_string(attribute(cudaDevAttrComputeCapabilityMajor)) + "." +
             std::to_string(attribute(cudaDevAttrComputeCapabilityMinor)) + " (CMAKE_CUDA_ARCHITECTURES)";
    }();
    return why;
  }
  bool simulated() const override { return false; }
  std::string_view math() const override {
#if SOFTMAX_FAST_MATH
    return "fast";
#else
    return "ieee";
#endif
  }
  std::vector<std::pair<std::string, std::string>> properties() const override {
    if (!unavailable().empty()) return {};
    int driver = 0, runtime = 0;
    SOFTMAX_CUDA_CHECK(cudaDriverGetVersion(&driver));
    SOFTMAX_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    auto text = [](cudaDeviceAttr which) { return std::to_string(attribute(which)); };
    std::vector<std::pair<std::string, std::string>> all = {
        {"cc", text(cudaDevAttrComputeCapabilityMajor) + "." + text(cudaDevAttrComputeCapabilityMinor)},
        {"sm_count", text(cudaDevAttrMultiProcessorCount)},
        {"l2_bytes", text(cudaDevAttrL2CacheSize)},
        {"sm_clock_max_khz", text(cudaDevAttrClockRate)},
        {"memory_clock_khz", text(cudaDevAttrMemoryClockRate)},
        {"memory_bus_bits", text(cudaDevAttrGlobalMemoryBusWidth)},
        {"ecc", text(cudaDevAttrEccEnabled)},
        {"driver", driver_version()},
        {"driver_cuda", version(driver)},
        {"cuda_runtime", version(runtime)},
        {"nvcc", std::to_string(__CUDACC_VER_MAJOR__) + "." + std::to_string(__CUDACC_VER_MINOR__) + "." +
                     std::to_string(__CUDACC_VER_BUILD__)}};
    const Condition now = cuda::driver().condition();
    all.emplace_back("card", card());
    if (now.watt_limit) all.emplace_back("power_limit_w", std::to_string(int(*now.watt_limit)));
    if (now.celsius) all.emplace_back("celsius", std::to_string(*now.celsius));
    return all;
  }
  std::size_t free_memory() const override {
    std::size_t free = 0, total = 0;
    SOFTMAX_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free;
  }
  std::size_t cache_bytes() const override { return std::size_t(attribute(cudaDevAttrL2CacheSize)); }

  void* allocate(std::size_t bytes, bool) override { return allocate_bytes(bytes).release(); }
  void release(void* memory, std::size_t, bool) noexcept override { cudaFree(memory); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    SOFTMAX_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    SOFTMAX_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  }
  void fill(void* to, unsigned char value, std::size_t bytes) override {
    SOFTMAX_CUDA_CHECK(cudaMemset(to, value, bytes));
  }
  void fill_noise(void* to, std::size_t count, std::uint64_t seed, DataType type) override {
    if (count == 0) return;
    const auto blocks = unsigned(std::min<std::size_t>((count + 255) / 256, 1 << 20));
    if (type == DataType::fp32)
      cuda::fill_noise<<<blocks, 256>>>(static_cast<float*>(to), count, seed, type);
    else
      cuda::fill_noise<<<blocks, 256>>>(static_cast<std::uint16_t*>(to), count, seed, type);
    SOFTMAX_CUDA_CHECK(cudaGetLastError());
  }
  std::vector<double> row_sums(const void* matrix, Rows m, DataType type) override {
    return each_row<double>(m, [&](double* sums) {
      if (type == DataType::fp32)
        sum_rows<<<row_blocks(m), 256>>>(static_cast<const float*>(matrix), sums, m, type);
      else
        sum_rows<<<row_blocks(m), 256>>>(static_cast<const std::uint16_t*>(matrix), sums, m, type);
    });
  }
  std::vector<int> rescales(const float* matrix, Rows m, int threads) override {
    return each_row<int>(m, [&](int* most) { count_rescales<<<row_blocks(m), 256>>>(matrix, most, m, threads); });
  }
  bool equal(const void* a, const void* b, std::size_t bytes) override {
    if (!differ_) differ_ = allocate_bytes(sizeof(int));  // kept: a shape has hundreds of sets to compare
    fill(differ_.get(), 0, sizeof(int));
    compare_bytes<<<1024, 256>>>(static_cast<const unsigned char*>(a), static_cast<const unsigned char*>(b), bytes,
                                 static_cast<int*>(differ_.get()));
    SOFTMAX_CUDA_CHECK(cudaGetLastError());
    int differs = 0;
    download(&differs, differ_.get(), sizeof differs);
    return !differs;
  }
  int copies() const override { return Timer::kCopies; }
  void copy(int way, void* to, const void* from, std::size_t bytes) override { timer().copy(way, to, from, bytes); }
  void read(const void* from, std::size_t bytes) override { timer().read(from, bytes); }
  void write(void* to, std::size_t bytes) override { timer().write(to, bytes); }
  void nothing() override { timer().nothing(); }
  double peak_bandwidth() const override {  // two transfers a clock
    return 2e3 * attribute(cudaDevAttrMemoryClockRate) * attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
  }
  double sm_clock_max() const override { return 1e3 * attribute(cudaDevAttrClockRate); }

  void* stream() const override { return timer().stream(); }
  void synchronize() override { SOFTMAX_CUDA_CHECK(cudaDeviceSynchronize()); }
  Batch time(const Work& launch, int samples, const Timing& timing) override {
    return timer().time(launch, samples, timing);
  }
  std::vector<std::pair<std::string_view, double>> hardware_counters(const std::function<void()>& launch) override {
    if (!hardware_) hardware_.emplace();
    return hardware_->measure(launch, [this] { timer().empty_cache(Flush::read); });
  }
  std::vector<std::string> counters_left_out() const override {
    return hardware_ ? hardware_->left_out() : std::vector<std::string>();
  }

  // For `ncu --profile-from-start off` and `nsys profile -c cudaProfilerApi`.
  void profiled(const std::string& name, const std::function<void()>& work) override {
    struct Range {
      explicit Range(const std::string& name) {
        SOFTMAX_CUDA_CHECK(cudaProfilerStart());
        nvtxRangePushA(name.c_str());
      }
      ~Range() {
        nvtxRangePop();
        cudaProfilerStop();
      }
    };
    synchronize();  // nothing from before
    const Range range(name);
    work();
    synchronize();
  }

  LaunchInfo last_launch() const override {
    if (!last.function) return {};
    cudaFuncAttributes attributes;
    SOFTMAX_CUDA_CHECK(cudaFuncGetAttributes(&attributes, last.function));
    const Grid& g = last.grid;
    const int threads = int(g.threads.x * g.threads.y * g.threads.z);
    int resident = 0;
    SOFTMAX_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, last.function, threads, g.shared));
    return {.blocks = std::int64_t(g.blocks.x) * g.blocks.y * g.blocks.z,
            .threads = threads,
            .shared_bytes = std::int64_t(attributes.sharedSizeBytes + g.shared),
            .registers = attributes.numRegs,
            .local_bytes = int(attributes.localSizeBytes),
            .blocks_per_sm = resident};
  }

 private:
  // Which card of its model, without giving its serial number away.
  static std::string card() {
    cudaDeviceProp properties;
    SOFTMAX_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    std::uint64_t bits = 0;
    for (const char byte : properties.uuid.bytes) bits = mix(bits ^ static_cast<unsigned char>(byte));
    char text[9];
    std::snprintf(text, sizeof text, "%08x", unsigned(bits));
    return text;
  }
  static unsigned row_blocks(Rows m) { return unsigned(std::min<std::int64_t>(m.rows, 1 << 20)); }
  // One value a row, written by a kernel that `start` launches.
  template <class T, class Start>
  std::vector<T> each_row(Rows m, Start start) {
    std::vector<T> values(static_cast<std::size_t>(m.rows));
    if (m.rows == 0) return values;
    const Memory on_gpu = allocate_bytes(values.size() * sizeof(T));
    start(static_cast<T*>(on_gpu.get()));
    SOFTMAX_CUDA_CHECK(cudaGetLastError());
    download(values.data(), on_gpu.get(), values.size() * sizeof(T));
    return values;
  }

  Timer& timer() const {
    if (!timer_) timer_ = std::make_unique<Timer>();
    return *timer_;
  }
  std::optional<HardwareCounters> hardware_;  // loads its library
  mutable std::unique_ptr<Timer> timer_;      // the first use of the GPU makes it
  Memory differ_;                             // of equal()
};

}  // namespace
}  // namespace cuda

inline namespace SOFTMAX_BACKEND {

namespace {

// What the runtime is asked for; a function is told once what it may use: the limit of 48 KiB counts its static shared
// memory too, and clusters of more than 8 blocks are not portable.
struct Config : cudaLaunchConfig_t {
  Config(const void* function, const Grid& grid) : cudaLaunchConfig_t{} {
    struct Granted {
      std::size_t shared = 0;
      bool large_cluster = false;
    };
    static std::mutex mutex;
    static std::map<std::pair<int, const void*>, Granted> functions;  // of each GPU
    const std::lock_guard lock(mutex);
    Granted& granted = functions[{current(), function}];
    if (grid.shared > granted.shared) {
      SOFTMAX_CUDA_CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, int(grid.shared)));
      granted.shared = grid.shared;
    }
    if (grid.cluster > 8 && !granted.large_cluster) {
      SOFTMAX_CUDA_CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
      granted.large_cluster = true;
    }
    gridDim = grid.blocks;
    blockDim = grid.threads;
    dynamicSmemBytes = grid.shared;
    stream = static_cast<cudaStream_t>(grid.stream);
    attrs = attributes_;
    if (grid.cooperative) add(cudaLaunchAttributeCooperative).cooperative = 1;
    if (grid.cluster > 1) add(cudaLaunchAttributeClusterDimension).clusterDim = {grid.cluster, 1, 1};
    if (grid.overlap && limits().compute_capability >= 90)
      add(cudaLaunchAttributeProgrammaticStreamSerialization).programmaticStreamSerializationAllowed = 1;
  }
  Config(const Config&) = delete;

 private:
  cudaLaunchAttributeValue& add(cudaLaunchAttributeID id) {
    attributes_[numAttrs].id = id;
    return attributes_[numAttrs++].val;
  }
  cudaLaunchAttribute attributes_[3];
};

}  // namespace

void launch(const void* function, const Grid& grid, void** arguments) {
  const Config config(function, grid);
  SOFTMAX_CUDA_CHECK(cudaLaunchKernelExC(&config, function, arguments));
  cuda::last = {function, grid};
}

int resident_blocks(const void* function, const Grid& grid) {
  const int threads = int(grid.threads.x * grid.threads.y * grid.threads.z);
  static std::mutex mutex;
  static std::map<std::tuple<int, const void*, int, std::size_t, unsigned>, int> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace({current(), function, threads, grid.shared, grid.cluster}, 0);
  if (!is_new) return found->second;
  try {
    Grid one = grid;
    one.blocks = grid.cluster;
    const Config config(function, one);
    int count = 0;
    if (grid.cluster > 1)
      SOFTMAX_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&count, function, &config));
    else
      SOFTMAX_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, function, threads, grid.shared));
    return found->second = count * (grid.cluster > 1 ? int(grid.cluster) : limits().multiprocessors);
  } catch (...) {
    known.erase(found);
    throw;
  }
}

int current() {
  int device = 0;
  SOFTMAX_CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

const Limits& limits() {
  thread_local int device = -1;
  thread_local Limits of_gpu;
  if (const int now = current(); device != now) {
    const auto attribute = [now](cudaDeviceAttr which) {
      int value = 0;
      SOFTMAX_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, now));
      return value;
    };
    cudaFuncAttributes code;
    SOFTMAX_CUDA_CHECK(cudaFuncGetAttributes(&code, cuda::compare_bytes));
    const int major = attribute(cudaDevAttrComputeCapabilityMajor),
              minor = attribute(cudaDevAttrComputeCapabilityMinor);
    of_gpu = {.multiprocessors = attribute(cudaDevAttrMultiProcessorCount),
              .shared_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
              .compute_capability = std::min(10 * major + minor, code.ptxVersion)};
    device = now;
  }
  return of_gpu;
}

Machine& machine() {
  static cuda::Gpu gpu;  // touches no GPU until it is asked for something
  return gpu;
}

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::device
