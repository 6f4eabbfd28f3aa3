#pragma once
// The device of a kernel file: one of two back ends, same words.
//
// A kernel may use:
//   __global__ __device__ __host__ __forceinline__ __launch_bounds__ __align__, threadIdx blockIdx blockDim gridDim,
//   SHARED and SHARED_DYNAMIC in place of __shared__, dim3 float2 float4,
//   __syncthreads (_count _or _and), __syncwarp, __shfl_sync and its _down _up _xor, __ballot_sync __any_sync __all_sync,
//   atomicAdd atomicMax atomicExch atomicCAS, __threadfence (_block), __nanosleep, __ldg __ldcs __stcs,
//   C's float functions, __expf __fdividef, __float_as_uint __uint_as_float, min and max of integers,
//   cooperative groups: thread_block, tiles with shfl, shfl_down, shfl_xor and reduce, grid.sync, cluster.sync,
//   map_shared_rank.
// The host side uses device::Grid and device::launch(kernel, grid, arguments...).

#if SOFTMAX_BACKEND_CUDA
#include "kernels/device/cuda/words.hpp"
#else
#include "kernels/device/simt/cooperative_groups.hpp"
#include "kernels/device/simt/words.hpp"
#endif
