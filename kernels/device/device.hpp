#pragma once
// The device of a kernel file: one of two back ends, same words.
//
// A kernel may use:
//   __global__ __device__ __host__ __forceinline__ __launch_bounds__ __align__, threadIdx blockIdx blockDim gridDim,
//   warpSize, SHARED and SHARED_DYNAMIC in place of __shared__, dim3 float2 float3 float4 int2 int4 uint4,
//   __syncthreads (_count _or _and), __syncwarp, __shfl_sync and its _down _up _xor, __ballot_sync __any_sync __all_sync,
//   __reduce_max_sync, __activemask, atomicAdd _Sub _Max _Min _And _Or _Inc _Exch _CAS, __threadfence (_block), __nanosleep,
//   __ldg __ldca __ldcg __ldcs __stcg __stcs __stwt, C's float functions, rsqrtf, min and max,
//   __expf __exp10f __logf __log2f __powf __fdividef, __fadd_rn __fsub_rn __fmul_rn __fdiv_rn __frcp_rn __fmaf_rn,
//   __float_as_uint __uint_as_float __float_as_int __int_as_float, memcpy memset, __trap,
//   cooperative groups: thread_block, tiles with shfl, shfl_down, shfl_up, shfl_xor, any, all, ballot and reduce (plus,
//   greater, less), sync, grid.sync, cluster.sync, map_shared_rank.
// The host side uses device::Grid and device::launch(kernel, grid, arguments...).

#if SOFTMAX_BACKEND_CUDA
#include "kernels/device/cuda/words.hpp"
#else
#include "kernels/device/simt/cooperative_groups.hpp"
#include "kernels/device/simt/words.hpp"
#endif
