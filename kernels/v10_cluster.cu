// Idea: the blocks of a cluster share a row. Every warp writes its (max, sum) into every block's shared memory, and what a
//   block waits for is that they have come.
// Against the previous: up to 16 blocks a row; the barrier of the block becomes one wait for all warps of the cluster.
// Cost: 1 read and 1 write of every element; no barrier of the block; a wait for the cluster to have begun, and one for its warps.
// Limit: compute capability 9.0; 16 blocks of 336 KB, 1.3 million columns of fp32. Clusters of 16 leave multiprocessors idle.
#include "kernels/collective/exchange.hpp"
#include "kernels/collective/launch.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax;
using namespace softmax::collective;

template <class In, class Out, int Threads, int Vectors>
__global__ void __launch_bounds__(Threads, 1024 / Threads) softmax_v10(Args a) {
  using Part = Slice<In, Out, Threads, Vectors>;
  using Exchange = ClusterExchange<Threads>;
  SHARED_DYNAMIC(staged, typename Part::Vector);
  SHARED(pairs, std::uint64_t[Exchange::kWarps * Exchange::kBlocks]);
  SHARED(arrived, device::Mbarrier);
  Exchange exchange{pairs, &arrived};
  exchange.begin(a.blocks);
  const long row = blockIdx.x / unsigned(a.blocks);
  Part part(int(threadIdx.x), staged, a.shared);
  begin(a, part,
        [&] { part.take(static_cast<const In*>(a.in) + row * a.in_stride, a.cols, exchange.rank(), a.share); });
  step_apart(a);
  part.load(a.once);
  const auto scale = scale_of<Out>(a, row);
  const MaxSum of_warp = warp_merge(part.reduce({-INFINITY, 0}, coarse(scale)), coarse(scale));
  part.store(static_cast<Out*>(a.out) + row * a.out_stride, exchange(of_warp, a.blocks, coarse(scale)), scale);
}

#define INSTANCES(X) X(128, 8) X(256, 4) X(256, 8) X(512, 4) X(512, 8) X(1024, 4) X(1024, 8)
#define PLAN(threads, vectors) Plan{threads, vectors},
#define INSTANCE(threads, vectors) softmax_v10<In, Out, threads, vectors>,
constexpr List<Plan> kPlans = {INSTANCES(PLAN)};
template <class In, class Out>
struct Of {
  static Instance at(int i) {
    static constexpr Instance all[] = {INSTANCES(INSTANCE)};
    return all[i];
  }
};
constexpr int k512x8 = 4, k1024x8 = 6;
constexpr long kSpare = 8 << 10;  // of shared memory: static, and what the system keeps

device::Grid clusters(const Problem& p, const Plan& by, long rows) {
  device::Grid how = grid_of(p, by, rows * by.blocks);
  how.cluster = unsigned(by.blocks);
  return how;
}

// Up to four blocks of at most 512 threads that hold the row in registers; else 512 threads, two blocks on a
// multiprocessor, as few as hold the row; one of 1024 where 16 of them do not.
int find(const Problem& p, Plan& found) {
  found = {};
  if (device::limits().compute_capability < 90) return -1;
  const auto shared_of = [&](const Plan& have, int blocks) {
    const long rest = divide_up(slice_vectors(p, have.threads, blocks), have.threads) - have.vectors;
    return rest > 0 ? rest : 0;
  };
  const long all = device::limits().shared_per_block - kSpare;
  const auto take = [&](int i, int least, int most, long room) {
    const Plan& have = kPlans[i];
    for (int blocks = least; blocks <= most; blocks *= 2) {
      const long shared = shared_of(have, blocks);
      if (shared * have.threads * vector_bytes(p.types()) > room || !launches(p.rows * blocks)) continue;
      found = {have.threads, have.vectors, int(shared), blocks};
      if (device::resident_blocks(instance<Of>(p.types(), i), clusters(p, found, 1)) > 0) return true;
    }
    found = {};
    return false;
  };
  // A cluster of one is no cluster, and its shared memory no cluster's.
  const int least = p.plan.blocks > 0 ? p.plan.blocks : 2, most = p.plan.blocks > 0 ? p.plan.blocks : 16;
  if (least < 2 || most > 16) return -1;
  for (int i = 0; i < kPlans.size(); ++i) {
    const bool asked = p.plan.threads == kPlans[i].threads && p.plan.vectors == kPlans[i].vectors;
    if (p.plan.threads != 0 ? asked && take(i, least, most, all)
                            : kPlans[i].threads <= 512 && take(i, least, most < 4 ? most : 4, 0))
      return i;
  }
  if (p.plan.threads != 0) return -1;
  return take(k512x8, least, most, all / 2) ? k512x8 : take(k1024x8, least, most, all) ? k1024x8 : -1;
}
constexpr auto plan = planned<find>;
std::string supports(const Problem& p) {
  return plan(p).threads ? "" : "the row is too long for a cluster, or for the plan, or the GPU has no clusters";
}
Rounding rounding(const Problem& p) {
  const Plan by = plan(p);
  const long warps = long(by.blocks) * by.threads / 32, told = divide_up(warps, 32);  // to a lane
  return {additions(by, p.types()) + 5 + told - 1 + levels(warps < 32 ? warps : 32), rescales(by, p.types()) + 2};
}

void launch(const Problem& p) {
  Plan by;
  const int i = find(p, by);
  Args a = args_of(p, by);
  a.early = p.overlap && leaves_room(p.rows * by.blocks, by.threads);
  a.once = p.rows * by.blocks <= 2 * device::limits().multiprocessors;
  if (by.shared > 0) a.apart = unsigned(device::limits().multiprocessors * 1024 / by.threads);
  device::launch(instance<Of>(p.types(), i), clusters(p, by, p.rows), a);
}

}  // namespace

SOFTMAX_KERNEL(10, "v10_cluster", "a cluster a row: its warps write (max, sum) to all its blocks", launch,
               .blocks = {0}, .exp = softmax::Exp::shifted, .divide = softmax::Divide::reciprocal, .alignment = 2,
               .types = kTypes, .in_place = true, .temperature = true, .supports = supports, .rounding = rounding,
               .plans = kPlans, .plan = plan)
