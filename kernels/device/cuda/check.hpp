#pragma once
// Every call to the CUDA runtime goes through here.

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace softmax::device::cuda {

// Throws with the call's text and place. Reading the error clears it, so that the next call is judged on its own; only
// an error that has killed the context stays.
inline void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  std::string where = file;
  where = where.substr(where.find_last_of('/') + 1);
  throw std::runtime_error(std::string(call) + " at " + where + ":" + std::to_string(line) + ": " +
                           cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}

}  // namespace softmax::device::cuda

#define SOFTMAX_CUDA_CHECK(...) ::softmax::device::cuda::check((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
