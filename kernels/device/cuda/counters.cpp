#include "kernels/device/cuda/counters.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <stdexcept>

namespace softmax::device::cuda {

std::span<const Counter> counters() {
#define SAME(name) \
  Counter { name, name ".sum" }
  static constexpr Counter kCounters[] = {
      SAME("l1tex__t_requests_pipe_lsu_mem_global_op_ld"),
      SAME("l1tex__t_sectors_pipe_lsu_mem_global_op_ld"),
      SAME("smsp__sass_data_bytes_mem_global_op_ld"),
      SAME("l1tex__t_requests_pipe_lsu_mem_global_op_st"),
      SAME("l1tex__t_sectors_pipe_lsu_mem_global_op_st"),
      SAME("smsp__sass_data_bytes_mem_global_op_st"),
      SAME("smsp__inst_executed_op_shared_ld"),
      SAME("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld"),
      SAME("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"),
      SAME("smsp__inst_executed_op_shared_st"),
      SAME("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st"),
      SAME("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st"),
      {"dram_bytes_read", "dram__bytes_read.sum"},
      {"dram_bytes_written", "dram__bytes_write.sum"},
      {"instructions", "smsp__inst_executed.sum"},
      {"occupancy%", "sm__warps_active.avg.pct_of_peak_sustained_active"},
  };
#undef SAME
  return kCounters;
}

}  // namespace softmax::device::cuda

#if __has_include(<cupti_range_profiler.h>)

#include <cuda_runtime.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <dlfcn.h>

namespace softmax::device::cuda {
namespace {

// What CUPTI refuses, as against what a launch throws.
struct CuptiError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A parameter struct of CUPTI's, all zero but its size.
#define PARAMS(type, variable) \
  type##_Params variable{};    \
  variable.structSize = type##_Params_STRUCT_SIZE

bool instrumented(const Counter& counter) {
  return std::string_view(counter.metric).find("sass_") != std::string::npos;
}

std::string advice(CUptiResult error) {
  switch (error) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return ": the driver lets only administrators read the GPU's counters. Run as root (in a container with "
             "--cap-add=SYS_ADMIN), or load the driver with NVreg_RestrictProfilingToAdminUsers=0; see "
             "https://developer.nvidia.com/ERR_NVGPUCTRPERM";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return ": a virtual GPU, whose host does not let its counters be read";
    case CUPTI_ERROR_HARDWARE_BUSY: return ": another profiler, such as DCGM or Nsight, holds the counters";
    default: return "";
  }
}

CUcontext current_context() {
  if (const cudaError_t error = cudaFree(nullptr); error != cudaSuccess) {  // makes the context, if there is none yet
    cudaGetLastError();
    throw std::runtime_error(std::string("no usable GPU: ") + cudaGetErrorString(error));
  }
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);  // the runtime has loaded it
  auto* current = driver ? reinterpret_cast<decltype(&cuCtxGetCurrent)>(dlsym(driver, "cuCtxGetCurrent")) : nullptr;
  CUcontext context = nullptr;
  if (!current || current(&context) != CUDA_SUCCESS || !context) throw std::runtime_error("no current CUDA context");
  return context;
}

// Runs what undoes a step when the scope ends, however it ends.
template <class Undo>
class Finally {
 public:
  explicit Finally(Undo undo) : undo_(undo) {}
  ~Finally() { undo_(); }
  Finally(const Finally&) = delete;

 private:
  Undo undo_;
};

}  // namespace

struct HardwareCounters::Cupti {
#define SOFTMAX_CUPTI(F)                          \
  F(cuptiGetResultString)                         \
  F(cuptiDeviceGetChipName)                       \
  F(cuptiProfilerInitialize)                      \
  F(cuptiProfilerDeInitialize)                    \
  F(cuptiProfilerDeviceSupported)                 \
  F(cuptiProfilerGetCounterAvailability)          \
  F(cuptiProfilerHostInitialize)                  \
  F(cuptiProfilerHostDeinitialize)                \
  F(cuptiProfilerHostConfigAddMetrics)            \
  F(cuptiProfilerHostGetConfigImageSize)          \
  F(cuptiProfilerHostGetConfigImage)              \
  F(cuptiProfilerHostEvaluateToGpuValues)         \
  F(cuptiRangeProfilerEnable)                     \
  F(cuptiRangeProfilerDisable)                    \
  F(cuptiRangeProfilerGetCounterDataSize)         \
  F(cuptiRangeProfilerCounterDataImageInitialize) \
  F(cuptiRangeProfilerSetConfig)                  \
  F(cuptiRangeProfilerStart)                      \
  F(cuptiRangeProfilerPushRange)                  \
  F(cuptiRangeProfilerPopRange)                   \
  F(cuptiRangeProfilerStop)                       \
  F(cuptiRangeProfilerDecodeData)                 \
  F(cuptiRangeProfilerGetCounterDataInfo)
#define DECLARE(name) decltype(&::name) name = nullptr;
  SOFTMAX_CUPTI(DECLARE)
#undef DECLARE

  // The library is never closed: it has hooked itself into the driver.
  explicit Cupti(const std::string& only) {
    const std::string folder = SOFTMAX_CUPTI_FOLDER "/";
    std::vector<std::string> names{only};
    if (only.empty()) names = {folder + "libcupti.so", "libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    void* library = nullptr;
    for (const std::string& name : names)
      if (!library) library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(std::string("no CUPTI: ") + dlerror());
#define FIND(name)                                                \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  if (!name) throw std::runtime_error("this CUPTI has no " #name ": the range profiler came with CUDA 12.6");
    SOFTMAX_CUPTI(FIND)
#undef FIND
  }

  void check(CUptiResult error, const char* call) const {
    if (error == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    cuptiGetResultString(error, &text);
    throw CuptiError(std::string(call) + ": " + (text ? text : std::to_string(error)) + advice(error));
  }
#define CHECKED(call, parameters) check(call(parameters), #call)

  std::string chip() const {
    int device = 0;
    cudaGetDevice(&device);
    PARAMS(CUpti_Device_GetChipName, name);
    name.deviceIndex = std::size_t(device);
    CHECKED(cuptiDeviceGetChipName, &name);
    return name.pChipName;
  }

  // Everything that can be asked without starting to profile. The driver's permission shows in the last question.
  void ask() const {
    const CUcontext context = current_context();
    PARAMS(CUpti_Profiler_Initialize, begin);
    CHECKED(cuptiProfilerInitialize, &begin);
    const Finally end([this] { deinitialize(); });
    PARAMS(CUpti_Profiler_DeviceSupported, device);
    cudaGetDevice(&device.cuDevice);
    device.api = CUPTI_PROFILER_RANGE_PROFILING;
    CHECKED(cuptiProfilerDeviceSupported, &device);
    if (device.vGpu == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED || device.vGpu == CUPTI_PROFILER_CONFIGURATION_DISABLED)
      check(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "cuptiProfilerDeviceSupported");
    if (device.isSupported == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED)
      throw CuptiError("CUPTI cannot profile this GPU, or not as it is set up");
    PARAMS(CUpti_Profiler_GetCounterAvailability, available);
    available.ctx = context;
    CHECKED(cuptiProfilerGetCounterAvailability, &available);
    std::vector<std::uint8_t> image(available.counterAvailabilityImageSize);
    available.pCounterAvailabilityImage = image.data();
    CHECKED(cuptiProfilerGetCounterAvailability, &available);
  }

  void deinitialize() const {
    PARAMS(CUpti_Profiler_DeInitialize, end);
    cuptiProfilerDeInitialize(&end);
  }

  // Metrics into the plan of passes that collects them, and what was collected into values.
  struct Host {
    Host(const Cupti& c, const std::string& chip) : cupti(c) {
      PARAMS(CUpti_Profiler_Host_Initialize, begin);
      begin.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
      begin.pChipName = chip.c_str();
      cupti.check(cupti.cuptiProfilerHostInitialize(&begin), "cuptiProfilerHostInitialize");
      object = begin.pHostObject;
    }
    ~Host() {
      PARAMS(CUpti_Profiler_Host_Deinitialize, end);
      end.pHostObject = object;
      cupti.cuptiProfilerHostDeinitialize(&end);
    }
    Host(const Host&) = delete;
    CUptiResult add(std::vector<const char*>& metrics) const {
      PARAMS(CUpti_Profiler_Host_ConfigAddMetrics, added);
      added.pHostObject = object;
      added.ppMetricNames = metrics.data();
      added.numMetrics = metrics.size();
      return cupti.cuptiProfilerHostConfigAddMetrics(&added);
    }
    std::vector<std::uint8_t> image() const {
      PARAMS(CUpti_Profiler_Host_GetConfigImageSize, size);
      size.pHostObject = object;
      cupti.check(cupti.cuptiProfilerHostGetConfigImageSize(&size), "cuptiProfilerHostGetConfigImageSize");
      std::vector<std::uint8_t> bytes(size.configImageSize);
      PARAMS(CUpti_Profiler_Host_GetConfigImage, got);
      got.pHostObject = object;
      got.configImageSize = bytes.size();
      got.pConfigImage = bytes.data();
      cupti.check(cupti.cuptiProfilerHostGetConfigImage(&got), "cuptiProfilerHostGetConfigImage");
      return bytes;
    }
    const Cupti& cupti;
    CUpti_Profiler_Host_Object* object = nullptr;
  };

  bool schedules(const std::string& chip, const Counter& counter) const {
    std::vector<const char*> metric{counter.metric};
    return Host(*this, chip).add(metric) == CUPTI_SUCCESS;
  }

  // The values of these counters for one launch.
  std::vector<double> collect(const std::vector<Counter>& wanted, const std::function<void()>& launch,
                              const std::function<void()>& before) const;
};

std::vector<double> HardwareCounters::Cupti::collect(const std::vector<Counter>& wanted,
                                                     const std::function<void()>& launch,
                                                     const std::function<void()>& before) const {
  std::vector<const char*> metrics;
  for (const Counter& counter : wanted) metrics.push_back(counter.metric);
  const Host host(*this, chip());
  check(host.add(metrics), "cuptiProfilerHostConfigAddMetrics");
  const std::vector<std::uint8_t> config = host.image();

  PARAMS(CUpti_Profiler_Initialize, begin);
  CHECKED(cuptiProfilerInitialize, &begin);
  const Finally end([this] { deinitialize(); });
  PARAMS(CUpti_RangeProfiler_Enable, enable);
  enable.ctx = current_context();
  CHECKED(cuptiRangeProfilerEnable, &enable);
  auto* const profiler = enable.pRangeProfilerObject;
  const Finally off([&] {
    PARAMS(CUpti_RangeProfiler_Disable, disable);
    disable.pRangeProfilerObject = profiler;
    cuptiRangeProfilerDisable(&disable);
  });

  PARAMS(CUpti_RangeProfiler_GetCounterDataSize, size);
  size.pRangeProfilerObject = profiler;
  size.pMetricNames = metrics.data();
  size.numMetrics = metrics.size();
  size.maxNumOfRanges = 1;
  size.maxNumRangeTreeNodes = 1;
  CHECKED(cuptiRangeProfilerGetCounterDataSize, &size);
  std::vector<std::uint8_t> data(size.counterDataSize);
  PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize, image);
  image.pRangeProfilerObject = profiler;
  image.counterDataSize = data.size();
  image.pCounterData = data.data();
  CHECKED(cuptiRangeProfilerCounterDataImageInitialize, &image);
  PARAMS(CUpti_RangeProfiler_SetConfig, set);
  set.pRangeProfilerObject = profiler;
  set.configSize = config.size();
  set.pConfig = config.data();
  set.counterDataImageSize = data.size();
  set.pCounterDataImage = data.data();
  set.range = CUPTI_UserRange;
  set.replayMode = CUPTI_UserReplay;
  set.maxRangesPerPass = 1;
  set.numNestingLevels = set.minNestingLevel = set.targetNestingLevel = 1;
  CHECKED(cuptiRangeProfilerSetConfig, &set);

  const auto finish = [] {
    if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
      cudaGetLastError();
      throw std::runtime_error(std::string("a launch that was counted failed: ") + cudaGetErrorString(error));
    }
  };
  PARAMS(CUpti_RangeProfiler_Stop, stop);
  stop.pRangeProfilerObject = profiler;
  for (int pass = 0; !stop.isAllPassSubmitted; ++pass) {
    if (pass == 100) throw CuptiError("CUPTI asks for ever more passes");
    if (before) before();
    finish();
    PARAMS(CUpti_RangeProfiler_Start, start);
    start.pRangeProfilerObject = profiler;
    CHECKED(cuptiRangeProfilerStart, &start);
    PARAMS(CUpti_RangeProfiler_PopRange, pop);
    pop.pRangeProfilerObject = profiler;
    try {
      PARAMS(CUpti_RangeProfiler_PushRange, push);
      push.pRangeProfilerObject = profiler;
      push.pRangeName = "launch";
      CHECKED(cuptiRangeProfilerPushRange, &push);
      launch();
      finish();
    } catch (...) {
      cuptiRangeProfilerPopRange(&pop);
      cuptiRangeProfilerStop(&stop);
      throw;
    }
    const CUptiResult popped = cuptiRangeProfilerPopRange(&pop);
    CHECKED(cuptiRangeProfilerStop, &stop);
    check(popped, "cuptiRangeProfilerPopRange");
  }

  PARAMS(CUpti_RangeProfiler_DecodeData, decode);
  decode.pRangeProfilerObject = profiler;
  CHECKED(cuptiRangeProfilerDecodeData, &decode);
  PARAMS(CUpti_RangeProfiler_GetCounterDataInfo, info);
  info.pCounterDataImage = data.data();
  info.counterDataImageSize = data.size();
  CHECKED(cuptiRangeProfilerGetCounterDataInfo, &info);
  if (info.numTotalRanges != 1)
    throw CuptiError("CUPTI counted " + std::to_string(info.numTotalRanges) + " launches, not one");
  std::vector<double> values(metrics.size(), NAN);
  PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues, evaluate);
  evaluate.pHostObject = host.object;
  evaluate.pCounterDataImage = data.data();
  evaluate.counterDataImageSize = data.size();
  evaluate.ppMetricNames = metrics.data();
  evaluate.numMetrics = metrics.size();
  evaluate.pMetricValues = values.data();
  CHECKED(cuptiProfilerHostEvaluateToGpuValues, &evaluate);
  return values;
}

HardwareCounters::HardwareCounters(std::string library) {
  try {
    cupti_ = std::make_unique<Cupti>(library);
  } catch (const std::exception& error) {
    why_ = error.what();
  }
}

const std::string& HardwareCounters::unavailable() {
  if (cupti_ && !asked_) try {
      asked_ = true;
      cupti_->ask();
    } catch (const std::exception& error) {
      why_ = error.what();
    }
  return why_;
}

std::vector<Counter> HardwareCounters::schedulable(const std::string& chip) {
  std::vector<Counter> can;
  if (cupti_)
    std::copy_if(counters().begin(), counters().end(), std::back_inserter(can),
                 [&](const Counter& counter) { return cupti_->schedules(chip, counter); });
  return can;
}

HardwareCounters::Counts HardwareCounters::measure(const std::function<void()>& launch,
                                                   const std::function<void()>& before) {
  if (!unavailable().empty()) throw std::runtime_error(unavailable());
  if (!planned_) {
    const std::string chip = cupti_->chip();
    for (const Counter& counter : counters())
      if (!cupti_->schedules(chip, counter))
        left_out_.push_back(std::string(counter.key) + ": unknown to CUPTI");
      else
        (instrumented(counter) ? by_code_ : by_hardware_).push_back(counter);
    planned_ = true;
  }
  std::map<std::string_view, double> counted;
  auto collect = [&](const std::vector<Counter>& wanted) {
    if (wanted.empty()) return;
    const std::vector<double> values = cupti_->collect(wanted, launch, before);
    for (std::size_t i = 0; i < wanted.size(); ++i) counted[wanted[i].key] = values[i];
  };
  collect(by_hardware_);
  // These CUPTI gets by patching the kernel's code, which can fail where the hardware's own counters do not.
  try {
    collect(by_code_);
  } catch (const CuptiError& error) {
    for (const Counter& counter : by_code_) left_out_.push_back(std::string(counter.key) + ": " + error.what());
    by_code_.clear();
  }
  Counts counts;
  for (const Counter& counter : counters())
    if (const auto found = counted.find(counter.key); found != counted.end() && std::isfinite(found->second))
      counts.push_back(*found);
  return counts;
}

}  // namespace softmax::device::cuda

#else

namespace softmax::device::cuda {

struct HardwareCounters::Cupti {};
HardwareCounters::HardwareCounters(std::string)
    : why_("built without CUPTI's range profiler, which came with CUDA 12.6") {}
const std::string& HardwareCounters::unavailable() { return why_; }
std::vector<Counter> HardwareCounters::schedulable(const std::string&) { return {}; }
HardwareCounters::Counts HardwareCounters::measure(const std::function<void()>&, const std::function<void()>&) {
  throw std::runtime_error(why_);
}

}  // namespace softmax::device::cuda

#endif

namespace softmax::device::cuda {
HardwareCounters::~HardwareCounters() = default;
}  // namespace softmax::device::cuda
