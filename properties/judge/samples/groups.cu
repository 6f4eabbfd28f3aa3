// Several warps a block, each with a row, through cooperative groups.
// launch: softmax_warps<float, 4><<<dim3((N + 3) / 4), 4 * 32, 0, stream>>>(in, out, N, C)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

template <typename T, int kWarps>
__global__ void __launch_bounds__(kWarps * 32)
    softmax_warps(const T* __restrict__ in, T* __restrict__ out, int N, int C) {
  __shared__ T largest[kWarps], total[kWarps];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int row = block.group_index().x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= N) return;
  const T* x = in + size_t(row) * C;
  T m = -INFINITY;
  for (int i = warp.thread_rank(); i < C; i += warp.num_threads()) m = max(m, x[i]);
  m = cg::reduce(warp, m, cg::greater<T>());
  if (warp.thread_rank() == 0) largest[warp.meta_group_rank()] = m;
  warp.sync();
  m = largest[warp.meta_group_rank()];
  T sum = 0;
  for (int i = warp.thread_rank(); i < C; i += warpSize) sum += __expf(x[i] - m);
  sum = cg::reduce(warp, sum, cg::plus<T>());
  if (warp.thread_rank() == 0) total[warp.meta_group_rank()] = sum + (m - m);
  cg::sync(warp);
  const T inverse = 1.0f / total[warp.meta_group_rank()];
  for (int i = warp.thread_rank(); i < C; i += warpSize) __stcs(&out[size_t(row) * C + i], __expf(x[i] - m) * inverse);
}
