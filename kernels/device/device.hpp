#pragma once
// The device of a kernel file: one of two back ends, same words.
//
// A kernel may use:
//   __global__ __device__ __host__ __forceinline__ __launch_bounds__ __align__, threadIdx blockIdx blockDim gridDim,
//   warpSize, SHARED and SHARED_DYNAMIC in place of __shared__, dim3 float2 float3 float4 int2 int4 uint2 uint4,
//   __syncthreads (_count _or _and), __syncwarp, __shfl_sync and its _down _up _xor, __ballot_sync __any_sync __all_sync,
//   __reduce_max_sync, __activemask, atomicAdd _Sub _Max _Min _And _Or _Inc _Exch _CAS, __threadfence (_block), __nanosleep,
//   __ldg __ldca __ldcg __ldcs __stcg __stcs __stwb __stwt, C's float functions, rsqrtf, min and max,
//   __expf __exp10f __logf __log2f __powf __fdividef, __fadd_rn __fsub_rn __fmul_rn __fdiv_rn __frcp_rn __fmaf_rn,
//   __float_as_uint __uint_as_float __float_as_int __int_as_float, memcpy memset, __trap,
//   __half __half2 __nv_bfloat16 __nv_bfloat162, their conversions (numbers.hpp lists them), __funnelshift_r,
//   __pipeline_memcpy_async of 4, 8 or 16 bytes, __pipeline_commit, __pipeline_wait_prior,
//   cooperative groups: thread_block, tiles with shfl, shfl_down, shfl_up, shfl_xor, any, all, ballot and reduce (plus,
//   greater, less), sync, grid.sync, cluster.sync, barrier_arrive, barrier_wait, map_shared_rank;
// and of softmax::device, where cuda/hopper.hpp says what they mean:
//   load_relaxed and store_relaxed of a uint4 or an unsigned, grid_dependency_wait grid_dependency_launch, pause,
//   Mbarrier mbarrier_init mbarrier_fence_init mbarrier_expect mbarrier_wait, store_async bulk_load async_fence: for less
//   than compute capability 9.0 these compile and trap, as clusters do; bulk_prefetch, which does nothing there.
// The host side uses device::Grid, device::launch(kernel, grid, arguments...), device::resident_blocks(kernel, grid) and
// device::limits().

#if SOFTMAX_BACKEND_CUDA
#include "kernels/device/cuda/words.hpp"
#else
#include "kernels/device/simt/cooperative_groups.hpp"
#include "kernels/device/simt/numbers.hpp"
#include "kernels/device/simt/words.hpp"
#endif
