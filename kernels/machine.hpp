#pragma once
// A machine that runs kernels: the GPU, or the CPU device that checks them. Host side only; no CUDA word in here.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace softmax {

enum class DataType;  // kernel.hpp

// In which order the CPU device runs threads that no barrier orders. A right kernel gives the same bits under all of
// them.
struct Schedule {
  enum class Order { forward, reverse, seeded } order = Order::forward;
  std::uint64_t seed = 0;

  bool operator==(const Schedule&) const = default;
};
std::string to_string(const Schedule&);

// What one launch asked of the machine.
struct LaunchInfo {
  std::int64_t blocks = 0;
  int threads = 0;                      // a block
  std::int64_t shared_bytes = 0;        // a block, static and dynamic
  std::optional<int> registers;         // a thread; unknown on the CPU device
  std::optional<int> local_bytes = {};  // a thread: what its registers could not hold
  std::optional<int> blocks_per_sm;     // resident at once
};

// How closely a checking machine watches the loads and stores of kernels.
enum class Watch { off, count, check };

// A matrix that a launch may touch, or plain memory, which is one row. A checking machine reports an access to anything
// else, and names an address by it: "row 3, column 7 of the input".
struct Region {
  enum class Use {
    input,    // read only
    output,   // of any content at first; the kernel must write every element
    scratch,  // of any content at first
    state,    // of some content at first, to be read and written
  };
  std::string name;
  const void* data = nullptr;
  std::int64_t rows = 0, cols = 0, stride = 0;  // elements
  std::size_t element = 4;                      // bytes
  Use use = Use::input;
};

// What the warps of traced launches asked of memory, summed. counter_names() gives each its name and unit.
struct Counters {
  std::int64_t global_load_requests = 0, global_load_sectors = 0, global_load_bytes = 0, redundant_load_bytes = 0;
  std::int64_t global_store_requests = 0, global_store_sectors = 0, global_store_bytes = 0;
  std::int64_t shared_load_requests = 0, shared_load_wavefronts = 0, shared_load_conflicts = 0;
  std::int64_t shared_store_requests = 0, shared_store_wavefronts = 0, shared_store_conflicts = 0;
  std::int64_t atomics = 0, barriers = 0, shuffles = 0, votes = 0, partial_requests = 0;

  Counters& operator+=(const Counters&);
  bool operator==(const Counters&) const = default;
  std::int64_t bytes_transferred() const { return 32 * (global_load_sectors + global_store_sectors); }
};
struct CounterName {
  std::string_view key;  // Nsight Compute's, where it has one
  std::int64_t Counters::*value;
  std::string_view meaning;
};
std::span<const CounterName> counter_names();

// The counters of traced launches, in all and by source line, in the order of files and lines.
struct Profile {
  struct Line {
    std::string file;  // with its folder, as the compiler was told it
    int line = 0;
    Counters counters;
  };
  Counters total;
  std::vector<Line> lines;
  std::int64_t accesses = 0;  // of single threads
};

struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The layout of a row-major matrix, in elements.
struct Rows {
  std::int64_t rows, cols, stride;
};

// How launches are timed. Only `cold` and `graph` say what a kernel costs whose data come from memory.
enum class Mode {
  cold,       // the cache is emptied before each launch
  hot,        // one after another on the same buffers
  graph,      // in a CUDA graph, in turn over sets of buffers that together exceed the cache
  graph_hot,  // in a CUDA graph on one set
};
constexpr bool in_graph(Mode mode) { return mode == Mode::graph || mode == Mode::graph_hot; }
// How `cold` empties the cache.
enum class Flush {
  memset,  // writes twice its size: it is left full of dirty lines
  read,    // reads twice its size: clean lines
  none,
};
struct Timing {
  Mode mode = Mode::cold;
  Flush flush = Flush::memset;
  int sets = 1;      // of buffers that a graph's launches rotate over
  int launches = 1;  // nodes of a graph, a multiple of `sets`: a sample is their time divided by this
};
using Work = std::function<void(int set)>;

// What a batch of samples took. The clock is that of a multiprocessor; no seconds if it could not be read.
struct Batch {
  std::vector<double> seconds;  // one launch, in order
  double sm_cycles = 0, sm_seconds = 0;
  std::optional<std::uint64_t> throttle_reasons;  // NVML's bits for what slows the clocks; empty if nobody knows
};

class Machine {
 public:
  virtual ~Machine() = default;

  virtual std::string_view id() const = 0;      // "cpu" or "gpu": test names and --device
  virtual std::string name() const = 0;         // for people: "NVIDIA H200"
  virtual std::string unavailable() const = 0;  // empty if it can be used, else the reason
  virtual bool simulated() const = 0;           // its times say nothing about a GPU
  virtual std::string_view math() const = 0;    // "ieee" or "fast"
  virtual std::vector<std::pair<std::string, std::string>> properties() const = 0;
  virtual std::size_t free_memory() const = 0;  // bytes
  virtual std::size_t cache_bytes() const = 0;  // last-level cache, what a cold measurement must flush

  // Memory. `sparse` memory costs only what is touched, where the machine can do that. Throws OutOfMemory with both
  // sizes.
  virtual void* allocate(std::size_t bytes, bool sparse = false) = 0;
  virtual void release(void*, std::size_t bytes, bool sparse = false) noexcept = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* to, unsigned char value, std::size_t bytes) = 0;

  // to[i] = noise(seed, i), i < count, rounded to the type; see input.hpp. fp32 unless another is named.
  virtual void fill_noise(void* to, std::size_t count, std::uint64_t seed, DataType = DataType{}) = 0;
  // For each row, on the machine itself: its sum in double; and how often the running maximum of the busiest of `threads`
  // threads that stride over the row rises from a number to a larger one (reference::running_max_updates).
  virtual std::vector<double> row_sums(const void* matrix, Rows, DataType = DataType{}) = 0;
  virtual std::vector<int> rescales(const float* matrix, Rows, int threads) = 0;
  virtual bool equal(const void* a, const void* b, std::size_t bytes) = 0;  // bit for bit
  // Kernels that do nothing but move bytes, on stream(): the roofs that a bandwidth-bound kernel is held against. There
  // are `copies()` ways to copy, and the driver's own, which is no kernel.
  static constexpr int kDriverCopy = -1;
  virtual int copies() const = 0;
  virtual void copy(int way, void* to, const void* from, std::size_t bytes) = 0;
  virtual void read(const void* from, std::size_t bytes) = 0;
  virtual void write(void* to, std::size_t bytes) = 0;
  virtual void nothing() = 0;                          // an empty kernel: what any launch costs
  virtual double peak_bandwidth() const { return 0; }  // bytes/s by its memory's clock and width; 0: unknown
  virtual double sm_clock_max() const { return 0; }    // Hz; 0: unknown

  virtual void* stream() const { return nullptr; }  // Problem::stream of work that is timed
  virtual void synchronize() = 0;                   // waits, and throws what any launch since the last one did wrong
  // Times `samples` launches; emptying the cache is outside the measured time.
  virtual Batch time(const Work&, int samples, const Timing&) = 0;
  virtual LaunchInfo last_launch() const = 0;
  // Runs `work`, and lets a profiler that waits for it see that and nothing else, under this name.
  virtual void profiled(const std::string& name, const std::function<void()>& work) {
    (void)name;
    work();
  }
  // What the hardware counted in one launch with a cold cache, by the keys of result files; launches some five times.
  // Throws std::runtime_error, of one line, where it cannot be read.
  virtual std::vector<std::pair<std::string_view, double>> hardware_counters(const std::function<void()>& launch);
  virtual std::vector<std::string> counters_left_out() const { return {}; }  // by the last one, each with the reason

  virtual void schedule(Schedule) {}
  virtual void compute_capability(int) {}  // that a simulated machine says it has; 90, which is 9.0, at first
  // A machine that can check does so unless told otherwise. Forgets what was counted. `count` and `check` agree on the
  // counters; only `check` reports accesses that break a rule, as the launch's std::runtime_error.
  virtual void watch(Watch) {}
  virtual Profile profile() const { return {}; }  // of all launches since the last watch()
  // Runs `work`, whose launches may touch these regions, their own shared memory, and nothing else.
  virtual void within(const std::vector<Region>&, const std::function<void()>& work) { work(); }
};

// The machines of this program, the best one to measure on first.
std::vector<Machine*> machines();

// Machine memory with a guard band of 64 KiB on both sides; the band and the fresh memory hold a pattern that reads as
// NaN.
class Buffer {
 public:
  Buffer(Machine&, std::size_t bytes, bool sparse = false);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  void* data() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }
  std::size_t bytes() const { return bytes_; }
  Machine& machine() const { return *machine_; }

  void poison();  // the memory, not the bands
  void upload(const void* from, std::size_t bytes, std::size_t offset = 0);
  void download(void* to, std::size_t bytes, std::size_t offset = 0) const;
  // Empty if both bands still hold the pattern, else which byte does not.
  std::string damage() const;

 private:
  Machine* machine_ = nullptr;
  std::size_t bytes_ = 0, band_ = 0;
  bool sparse_ = false;
  void *base_ = nullptr, *data_ = nullptr;
};
// Every byte of fresh and guard memory; four of them read as a NaN.
inline constexpr unsigned char kPoison = 0xff;

}  // namespace softmax
