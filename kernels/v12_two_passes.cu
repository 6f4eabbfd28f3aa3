// Idea: two launches in place of a wait: blocks find the (max, sum) of their slices and leave it in the workspace, then
//   blocks of the same slices merge their row's and write. They go backwards: what was read last is still in L2.
// Against the previous: any row, and no block waits for another; a second read of what L2 did not keep.
// Cost: 2 reads and 1 write of every element; 8 bytes a slice; two launches, the second of which may begin early.
// Limit: the second read. Rows that fit on the chip are faster there.
#include "kernels/collective/exchange.hpp"
#include "kernels/collective/launch.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax;
using namespace softmax::collective;

// Of what each thread of the block has; all get it.
template <int Threads>
__device__ __forceinline__ MaxSum of_block(MaxSum of_thread, float scale) {
  SHARED(pairs, std::uint64_t[32]);
  return block_exchange<Threads>(warp_merge(of_thread, scale), pairs, scale);
}

// Of a multiprocessor: 64 registers each, or 80 for 8 vectors, which spill 16-bit types out of 64.
constexpr int resident_threads(int vectors) { return vectors < 8 ? 1024 : 768; }

template <class In, class Out, int Threads, int Vectors>
__global__ void __launch_bounds__(Threads, resident_threads(Vectors) / Threads) softmax_v12_sums(Args a) {
  using Part = Slice<In, Out, Threads, Vectors>;
  // In this order: who begins early behind this launch may read its input, which is complete by then.
  device::grid_dependency_wait();
  device::grid_dependency_launch();
  const long row = blockIdx.x / unsigned(a.blocks);
  const int rank = int(blockIdx.x % unsigned(a.blocks));
  const auto scale = coarse(scale_of<Out>(a, row));
  const In* const x = static_cast<const In*>(a.in) + row * a.in_stride;
  Part part(int(threadIdx.x));
  MaxSum mine = {-INFINITY, 0};
  const long tiles = Part::tiles_of(a.share);
  for (long tile = 0; tile < tiles; ++tile) {
    part.take_tile(x, a.cols, rank, a.share, tile), part.load();
    mine = part.reduce(mine, scale);
  }
  const MaxSum all = of_block<Threads>(mine, scale);
  if (threadIdx.x == 0) static_cast<std::uint64_t*>(a.workspace)[blockIdx.x] = as_word(all);
}

template <class In, class Out, int Threads, int Vectors>
__global__ void __launch_bounds__(Threads, resident_threads(Vectors) / Threads) softmax_v12_write(Args a) {
  using Part = Slice<In, Out, Threads, Vectors>;
  device::grid_dependency_launch();
  const unsigned block = gridDim.x - 1 - blockIdx.x;
  const long row = block / unsigned(a.blocks);
  const int rank = int(block % unsigned(a.blocks));
  const auto scale = scale_of<Out>(a, row);
  const In* const x = static_cast<const In*>(a.in) + row * a.in_stride;
  Out* const y = static_cast<Out*>(a.out) + row * a.out_stride;
  Part part(int(threadIdx.x));
  long tile = Part::tiles_of(a.share) - 1;
  part.take_tile(x, a.cols, rank, a.share, tile), part.load(true);
  device::grid_dependency_wait();
  const std::uint64_t* const told = static_cast<const std::uint64_t*>(a.workspace) + row * a.blocks;
  MaxSum mine = {-INFINITY, 0};
  for (int i = int(threadIdx.x); i < a.blocks; i += Threads) mine = merge(mine, as_pair(told[i]), coarse(scale));
  const MaxSum all = of_block<Threads>(mine, coarse(scale));
  for (part.store(y, all, scale); --tile >= 0; part.store(y, all, scale))
    part.take_tile(x, a.cols, rank, a.share, tile), part.load(true);
}

#define INSTANCES(X) X(128, 8) X(256, 4) X(256, 8) X(512, 4)
#define PLAN(threads, vectors) Plan{threads, vectors},
#define SUMS(threads, vectors) softmax_v12_sums<In, Out, threads, vectors>,
#define WRITE(threads, vectors) softmax_v12_write<In, Out, threads, vectors>,
constexpr List<Plan> kPlans = {INSTANCES(PLAN)};
template <class In, class Out>
struct Of {  // both launches of each plan: first all the one, then all the other
  static Instance at(int i) {
    static constexpr Instance all[] = {INSTANCES(SUMS) INSTANCES(WRITE)};
    return all[i];
  }
};
constexpr int kFirst = 1;  // 256 x 4
constexpr int kMostBlocks = 1 << 16;

long tile_of(const Plan& by) { return long(by.threads) * by.vectors; }
// As many as the registers of the card hold, in one wave; a slice that is not asked for has at least a tile.
long resident(const Plan& by) {
  return long(resident_threads(by.vectors) / by.threads) * device::limits().multiprocessors;
}
long useful(const Problem& p, const Plan& by) {
  const long tiles = slice_vectors(p, by.threads, 1) / tile_of(by);
  return tiles < 1 ? 1 : tiles < kMostBlocks ? tiles : kMostBlocks;
}
int find(const Problem& p, Plan& found) {
  found = {};
  if (p.plan.shared != 0 || p.plan.blocks < 0 || p.plan.blocks > kMostBlocks) return -1;
  for (int i = 0; i < kPlans.size(); ++i) {
    const Plan& have = kPlans[i];
    if (p.plan.threads == 0 ? i != kFirst : p.plan.threads != have.threads || p.plan.vectors != have.vectors) continue;
    const long most = useful(p, have), rows = p.batch_invariant || p.rows == 0 ? 1 : p.rows;
    const long blocks = rows < resident(have) ? resident(have) / rows : 1;
    found = {have.threads, have.vectors, 0, p.plan.blocks > 0 ? p.plan.blocks : int(blocks < most ? blocks : most)};
    if (!launches(p.rows * found.blocks)) break;
    return i;
  }
  found = {};
  return -1;
}
constexpr auto plan = planned<find>;
std::string supports(const Problem& p) {
  return plan(p).threads ? "" : "there is no such plan, or it has more blocks than a grid";
}
Rounding rounding(const Problem& p) {
  const Plan by = plan(p);
  if (by.threads == 0) return {};
  const long tiles = 1 + slice_vectors(p, by.threads, by.blocks) / tile_of(by), told = divide_up(by.blocks, by.threads);
  return {additions(by, p.types(), tiles) + told - 1 + levels(by.threads) +
              levels(by.blocks < by.threads ? by.blocks : by.threads),
          rescales(by, p.types(), tiles) + 2 + told - 1 + 2};
}
// Of fewer rows too, which may get more slices each.
std::int64_t workspace(const Problem& p) {
  const Plan by = plan(p);
  if (by.threads == 0) return 0;
  if (p.plan.blocks > 0 || p.batch_invariant) return 8 * p.rows * by.blocks;
  const long most = p.rows * useful(p, by), card = resident(by) > p.rows ? resident(by) : p.rows;
  return 8 * (most < card ? most : card);
}

void launch(const Problem& p) {
  Plan by;
  const int i = find(p, by);
  const device::Grid grid = grid_of(p, by, p.rows * by.blocks);
  device::launch(instance<Of>(p.types(), i), grid, args_of(p, by));
  device::launch(instance<Of>(p.types(), kPlans.size() + i), grid, args_of(p, by));
}

}  // namespace

SOFTMAX_KERNEL(12, "v12_two_passes", "two launches: slices of rows find (max, sum), then write backwards", launch,
               .blocks = {0}, .algorithm = softmax::Algorithm::online, .exp = softmax::Exp::shifted,
               .divide = softmax::Divide::reciprocal, .reads = 2, .alignment = 2, .types = kTypes, .in_place = true,
               .temperature = true, .supports = supports, .workspace = workspace, .rounding = rounding, .plans = kPlans,
               .plan = plan)
