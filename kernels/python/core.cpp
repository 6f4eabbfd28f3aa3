// softmax_lab._core: from arrays to a Problem. Its only caller, __init__.py, says what the package offers.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#if SOFTMAX_CUDA
#include <cuda_runtime_api.h>
#endif

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/library/softmax.hpp"

namespace nb = nanobind;

namespace softmax {
namespace {

// An array, or a DLPack capsule of one. Throws InvalidProblem.
template <class Array>
Array array(nb::handle from, const std::string& what) {
  if (Array to; nb::try_cast(from, to)) return to;
  throw InvalidProblem(what + " is no array that can be " +
                       (std::is_same_v<Array, nb::ndarray<>> ? "written" : "read") + " through DLPack");
}

template <class Array>
DataType type_of(const Array& a, const std::string& what) {
  const nb::dlpack::dtype type = a.dtype();
  const auto code = nb::dlpack::dtype_code(type.code);
  if (type.lanes == 1 && code == nb::dlpack::dtype_code::Float && type.bits == 32) return DataType::fp32;
  if (type.lanes == 1 && code == nb::dlpack::dtype_code::Float && type.bits == 16) return DataType::fp16;
  if (type.lanes == 1 && code == nb::dlpack::dtype_code::Bfloat && type.bits == 16) return DataType::bf16;
  throw InvalidProblem(what + " must be of float32, float16 or bfloat16");
}

struct Matrix {
  std::int64_t rows = 1, cols = 0, stride = 0;
};
// All axes but the last are rows; axes of one element have no stride that matters.
template <class Array>
Matrix matrix(const Array& a, const std::string& what) {
  if (a.ndim() == 0) throw InvalidProblem(what + " needs at least one axis");
  const auto last = a.ndim() - 1;
  Matrix m = {.cols = std::int64_t(a.shape(last))};
  if (a.size() == 0) {
    for (std::size_t i = 0; i < last; ++i) m.rows *= std::int64_t(a.shape(i));
    return {m.rows, m.cols, m.cols};
  }
  bool fits = m.cols == 1 || a.stride(last) == 1;
  for (std::size_t i = last; i-- > 0;) {
    const auto extent = std::int64_t(a.shape(i));
    if (extent == 1) continue;
    if (m.rows == 1)
      m.stride = a.stride(i);
    else
      fits &= a.stride(i) == m.stride * m.rows;
    m.rows *= extent;
  }
  if (m.rows == 1) m.stride = m.cols;
  if (!fits || m.stride < m.cols)
    throw InvalidProblem(what +
                         " must have a contiguous last axis, and other axes that make rows at one distance: call "
                         ".contiguous() (numpy.ascontiguousarray) on it");
  return m;
}

template <class A, class B>
void same_device(const A& x, const B& other, const std::string& what) {
  if (x.device_type() != other.device_type() || x.device_id() != other.device_id())
    throw InvalidProblem(what + " is on another device than x");
}

Device device_of(const nb::ndarray<nb::ro>& x) {
  const int type = x.device_type();
  if (type == nb::device::cpu::value) return Device::cpu;
  if (type == nb::device::cuda::value && SOFTMAX_CUDA) return Device::gpu;
  if (type == nb::device::cuda::value) throw DeviceError("softmax_lab was built without CUDA");
  throw InvalidProblem("x is neither on the CPU nor on a CUDA device");
}

// x, out, temperatures as array() takes them; without out, one like x is meant and nothing can be started.
struct Call {
  nb::ndarray<nb::ro> x, temperatures;  // keep the memory that the problem points to
  nb::ndarray<> out;
  Problem problem;
  Device device;

  Call(nb::handle x_, nb::handle out_, float temperature, nb::handle temperatures_, bool batch_invariant)
      : x(array<nb::ndarray<nb::ro>>(x_, "x")), device(device_of(x)) {
    const Matrix in = matrix(x, "x");
    problem = {.rows = in.rows, .cols = in.cols, .in_stride = in.stride, .out_stride = in.cols};
    problem.in_type = problem.out_type = type_of(x, "x");
    problem.in = x.data();
    problem.temperature = temperature;
    problem.batch_invariant = batch_invariant;
    if (!out_.is_none()) {
      out = array<nb::ndarray<>>(out_, "out");
      same_device(x, out, "out");
      bool same = out.ndim() == x.ndim();
      for (std::size_t i = 0; same && i < x.ndim(); ++i) same = out.shape(i) == x.shape(i);
      if (!same) throw InvalidProblem("out must have the shape of x");
      problem.out_stride = matrix(out, "out").stride;
      problem.out_type = type_of(out, "out");
      problem.out = out.data();
    }
    if (!temperatures_.is_none()) {
      temperatures = array<nb::ndarray<nb::ro>>(temperatures_, "temperature");
      same_device(x, temperatures, "temperature");
      if (temperatures.dtype() != nb::dtype<float>() || std::int64_t(temperatures.size()) != problem.rows)
        throw InvalidProblem("temperature must be a number, or one float32 for each of the " +
                             std::to_string(problem.rows) + " rows");
      std::int64_t dense = 1;
      for (std::size_t i = temperatures.ndim(); i-- > 0; dense *= std::int64_t(temperatures.shape(i)))
        if (temperatures.shape(i) > 1 && temperatures.stride(i) != dense)
          throw InvalidProblem("temperature must be contiguous");
      problem.temperatures = static_cast<const float*>(temperatures.data());
    }
  }
};

// `workspace(bytes)` gives the address of such memory on the GPU.
void run(nb::handle x, nb::handle out, float temperature, nb::handle temperatures, bool batch_invariant, bool overlap,
         std::uintptr_t stream, nb::handle workspace) {
  Call call(x, out, temperature, temperatures, batch_invariant);
  Problem& p = call.problem;
  p.overlap = overlap;
  p.stream = reinterpret_cast<void*>(stream);
  std::vector<std::uint64_t> own;
  if (const std::int64_t bytes = p.empty() ? 0 : workspace_bytes(p, call.device); bytes > 0) {
    if (call.device == Device::cpu) {  // which is done when forward() returns
      own.resize(std::size_t(bytes + 15) / 8 + 1);
      p.workspace = own.data() + std::uintptr_t(own.data()) % 16 / 8;
    } else {
      p.workspace = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(workspace(bytes)));
    }
  }
  forward(p, call.device);
}

std::string pick(nb::handle x, nb::handle out, float temperature, nb::handle temperatures, bool batch_invariant) {
  const Call call(x, out, temperature, temperatures, batch_invariant);
  return picked(call.problem, call.device);
}

// What no other capture of this process has; 0 if the stream is not being captured. Throws DeviceError.
std::uint64_t capture(std::uintptr_t stream) {
#if SOFTMAX_CUDA
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  if (const cudaError_t error = cudaStreamGetCaptureInfo(reinterpret_cast<cudaStream_t>(stream), &status, &id))
    throw DeviceError(cudaGetErrorString(error));
  return status == cudaStreamCaptureStatusNone ? 0 : id;
#else
  (void)stream;
  return 0;
#endif
}

}  // namespace
}  // namespace softmax

NB_MODULE(_core, m) {
  using namespace softmax;
  m.def("run", &run, nb::arg("x"), nb::arg("out"), nb::arg("temperature"), nb::arg("temperatures").none(),
        nb::arg("batch_invariant"), nb::arg("overlap"), nb::arg("stream"), nb::arg("workspace"));
  m.def("picked", &pick, nb::arg("x"), nb::arg("out").none(), nb::arg("temperature"), nb::arg("temperatures").none(),
        nb::arg("batch_invariant"));
  m.def("capture", &capture);
  m.attr("cuda") = bool(SOFTMAX_CUDA);
}
