#include "benchmarks/baselines/cudnn.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "kernels/machine.hpp"
#include "reference/error.hpp"

#if SOFTMAX_CUDNN
#include <cudnn.h>
#include <dlfcn.h>
#endif

namespace softmax::bench {
#if SOFTMAX_CUDNN
namespace {

const std::string kLibrary = "libcudnn.so." + std::to_string(CUDNN_MAJOR);

void* found(void* what) { return what ? what : throw std::runtime_error(dlerror()); }

template <class Function>
Function* symbol(const char* name) {
  static void* const library = found(dlopen(kLibrary.c_str(), RTLD_NOW | RTLD_LOCAL));
  return reinterpret_cast<Function*>(found(dlsym(library, name)));
}
#define CUDNN_FUNCTION(name) symbol<decltype(name)>(#name)

// Calls a function of the library that returns a status.
#define CUDNN_CALL(name, ...)                           \
  do {                                                  \
    static auto* const function = CUDNN_FUNCTION(name); \
    check(function(__VA_ARGS__), #name);                \
  } while (false)

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char last[512] = "";
  CUDNN_FUNCTION(cudnnGetLastErrorString)(last, sizeof last);
  throw std::runtime_error(std::string(what) + ": " + CUDNN_FUNCTION(cudnnGetErrorString)(status) +
                           (*last ? ": " : "") + last);
}

// One for the process: creating a handle takes longer than any launch.
struct Handle {
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t matrix = nullptr;
  std::int64_t rows = 0, cols = 0;  // of `matrix`
  DataType type = DataType::fp32;

  Handle() {
    CUDNN_CALL(cudnnCreate, &handle);
    CUDNN_CALL(cudnnCreateTensorDescriptor, &matrix);
  }
};
Handle& handle() {
  static Handle h;
  return h;
}

// The faster of the two on an H200: a row is all of C, H and W, or C at the only point of H and W.
cudnnSoftmaxMode_t mode(std::int64_t cols) {
  return cols >= 1024 && cols < 4096 ? CUDNN_SOFTMAX_MODE_CHANNEL : CUDNN_SOFTMAX_MODE_INSTANCE;
}

void launch(const Problem& p) {
  Handle& h = handle();
  if (h.rows != p.rows || h.cols != p.cols || h.type != p.in_type) {
    const cudnnDataType_t type = p.in_type == DataType::fp32   ? CUDNN_DATA_FLOAT
                                 : p.in_type == DataType::fp16 ? CUDNN_DATA_HALF
                                                               : CUDNN_DATA_BFLOAT16;
    CUDNN_CALL(cudnnSetTensor4dDescriptor, h.matrix, CUDNN_TENSOR_NCHW, type, int(p.rows), int(p.cols), 1, 1);
    h.rows = p.rows;
    h.cols = p.cols;
    h.type = p.in_type;
  }
  CUDNN_CALL(cudnnSetStream, h.handle, static_cast<cudaStream_t>(p.stream));
  const float one = 1, zero = 0;
  CUDNN_CALL(cudnnSoftmaxForward, h.handle, CUDNN_SOFTMAX_ACCURATE, mode(p.cols), &one, h.matrix, p.in, &zero, h.matrix,
             p.out);
}

std::string supports(const Problem& p) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (p.in_stride != p.cols || p.out_stride != p.cols) return "cudnn takes dense rows";
  // Sizes are int, and so are the library's offsets.
  if (p.rows > 0 && p.cols > kMost / p.rows)
    return "cudnn takes " + std::to_string(kMost) + " elements at most, not " + std::to_string(p.rows) + " x " +
           std::to_string(p.cols);
  return {};
}

// 16-bit outputs are further off than one rounding leaves them: as if exp and quotient were of that type too. A rounding to
// fp16 is worth 2^13 of float, one to bf16 2^16.
Rounding rounding(const Problem& p) {
  const double unit = p.out_type == DataType::fp16   ? reference::kFp16Output.relative
                      : p.out_type == DataType::bf16 ? reference::kBf16Output.relative
                                                     : 0;
  return {.additions = std::max<std::int64_t>(p.cols - 1, 0) + std::int64_t(2 * unit)};
}

Machine* machine_of_process = nullptr;
Machine& the_machine() { return *machine_of_process; }

Cudnn load(Machine& machine) {
  Cudnn all;
  try {
    if (machine.simulated()) throw std::runtime_error("runs on a GPU only");
    const std::size_t version = CUDNN_FUNCTION(cudnnGetVersion)();
    all.version = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
                  std::to_string(version % 100);
    handle();
  } catch (const std::runtime_error& e) {
    all.why_not = std::string("cudnn: ") + e.what();
    return all;
  }
  machine_of_process = &machine;
  // Whose exp and division it takes is not documented: the widest bound.
  static const Kernel kernel(0, "cudnn", "cuDNN's softmax, ACCURATE", __FILE__, the_machine, launch,
                             Traits{.blocks = {0},
                                    .algorithm = Algorithm::safe,
                                    .exp = Exp::fast,
                                    .divide = Divide::fast,
                                    .types = {{}, {DataType::fp16, DataType::fp16}, {DataType::bf16, DataType::bf16}},
                                    .supports = supports,
                                    .rounding = rounding});
  all.kernel = &kernel;
  return all;
}

}  // namespace
#else
namespace {
Cudnn load(Machine&) { return {.version = {}, .why_not = "cudnn: this program was built without it"}; }
}  // namespace
#endif

const Cudnn& cudnn(Machine& machine) {
  static const Cudnn all = load(machine);
  return all;
}

}  // namespace softmax::bench
