// Idea: few rows: blocks of the whole card share each. A cooperative launch keeps them resident, they exchange (max, sum)
//   through global memory, and groups of them go through the rows in turn.
// Against the previous: as many blocks a row as the card holds, in place of 16; the exchange costs a round trip through L2.
// Cost: 1 read and 1 write of every element; a block writes 16 bytes a row and reads 16 of each of its group; 2 barriers.
// Limit: a row that the card's registers and shared memory hold: 11 million columns of fp32 on an H200. Needs workspace.
#include "kernels/collective/exchange.hpp"
#include "kernels/collective/launch.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax;
using namespace softmax::collective;

template <class In, class Out, int Threads, int Vectors>
__global__ void __launch_bounds__(Threads, 1024 / Threads) softmax_v11(Args a) {
  using Part = Slice<In, Out, Threads, Vectors>;
  SHARED_DYNAMIC(staged, typename Part::Vector);
  SHARED(pairs, std::uint64_t[64]);
  SHARED(round, unsigned);
  const int group = int(blockIdx.x) / a.blocks, groups = int(gridDim.x) / a.blocks, rank = int(blockIdx.x) % a.blocks;
  GridExchange<Threads> exchange{static_cast<GridWorkspace*>(a.workspace), pairs, &round, group, rank, a.blocks};
  Part part(int(threadIdx.x), staged, a.shared);
  const auto take = [&](long row) {
    part.take(static_cast<const In*>(a.in) + row * a.in_stride, a.cols, rank, a.share);
  };
  begin(a, part, [&] { take(group); });
  exchange.begin();
  for (long row = group; row < a.rows; row += groups) {
    if (row != group) take(row);
    part.load(a.once);
    const auto scale = scale_of<Out>(a, row);
    const MaxSum of_warp = warp_merge(part.reduce({-INFINITY, 0}, coarse(scale)), coarse(scale));
    part.store(static_cast<Out*>(a.out) + row * a.out_stride, exchange(of_warp, coarse(scale)), scale);
  }
  exchange.end(unsigned(divide_up(a.rows, groups)));
}

#define INSTANCES(X) X(128, 8) X(256, 8) X(512, 4) X(512, 8) X(1024, 4) X(1024, 8)
#define PLAN(threads, vectors) Plan{threads, vectors},
#define INSTANCE(threads, vectors) softmax_v11<In, Out, threads, vectors>,
constexpr List<Plan> kPlans = {INSTANCES(PLAN)};
template <class In, class Out>
struct Of {
  static Instance at(int i) {
    static constexpr Instance all[] = {INSTANCES(INSTANCE)};
    return all[i];
  }
};
constexpr int kFirst = 1;  // 256 x 8

device::Grid grid(const Problem& p, const Plan& by, long blocks) {
  device::Grid how = grid_of(p, by, blocks);
  how.cooperative = true;
  return how;
}

// The card's blocks divided among the rows, but none without four vectors for each thread; shared memory for the
// rest.
int find(const Problem& p, Plan& found) {
  found = {};
  const long spare = 4 << 10;
  for (int i = 0; i < kPlans.size(); ++i) {
    const Plan& have = kPlans[i];
    const bool asked = p.plan.threads == have.threads && p.plan.vectors == have.vectors;
    if (p.plan.threads != 0 ? !asked : i != kFirst) continue;
    const long vectors = slice_vectors(p, have.threads, 1);
    for (int per_processor = 1024 / have.threads; per_processor > 0; --per_processor) {
      const long most = (device::limits().shared_per_block + 1024) / per_processor - 1024 - spare;
      long resident = long(per_processor) * device::limits().multiprocessors;
      if (p.max_blocks > 0 && p.max_blocks < resident) resident = p.max_blocks;
      long blocks = p.plan.blocks;
      if (blocks == 0) {
        const long rows = p.batch_invariant || p.rows == 0 ? 1 : p.rows;
        blocks = rows < resident ? resident / rows : 1;
        const long useful = divide_up(vectors, 4 * have.threads),
                   room = have.vectors + most / (have.threads * vector_bytes(p.types()));
        if (blocks > useful) blocks = useful > 0 ? useful : 1;
        if (const long least = divide_up(vectors, room * have.threads); blocks < least) blocks = least;
      }
      if (blocks > resident || blocks > GridWorkspace::kBlocks) continue;
      const long rest = divide_up(slice_vectors(p, have.threads, int(blocks)), have.threads) - have.vectors;
      const long shared = rest > 0 ? rest : 0;
      if (shared * have.threads * vector_bytes(p.types()) > most) continue;
      found = {have.threads, have.vectors, int(shared), int(blocks)};
      if (device::resident_blocks(instance<Of>(p.types(), i), grid(p, found, blocks)) < blocks) continue;
      return i;
    }
  }
  found = {};
  return -1;
}
constexpr auto plan = planned<find>;
std::string supports(const Problem& p) {
  if (!p.spin) return "its blocks wait for each other";
  return plan(p).threads ? "" : "the row is too long for the card, or for the plan";
}
Rounding rounding(const Problem& p) {
  const Plan by = plan(p);
  if (by.threads == 0) return {};
  const long told = divide_up(by.blocks, by.threads);  // to a thread
  return {additions(by, p.types()) + told - 1 + levels(by.threads) +
              levels(by.blocks < by.threads ? by.blocks : by.threads),
          rescales(by, p.types()) + 2 + told - 1 + 2};
}
std::int64_t workspace(const Problem&) { return GridWorkspace::kBytes; }

void launch(const Problem& p) {
  Plan by;
  const int i = find(p, by);
  const Instance kernel = instance<Of>(p.types(), i);
  device::Grid how = grid(p, by, by.blocks);
  long resident = device::resident_blocks(kernel, how);
  if (p.max_blocks > 0 && p.max_blocks < resident) resident = p.max_blocks;
  if (resident > GridWorkspace::kBlocks) resident = GridWorkspace::kBlocks;
  const long groups = resident / by.blocks;
  how.blocks = unsigned((groups < p.rows ? groups : p.rows) * by.blocks);
  Args a = args_of(p, by);
  a.once = groups >= p.rows;
  a.early = p.overlap && leaves_room(how.blocks.x, by.threads);
  device::launch(kernel, how, a);
}

}  // namespace

SOFTMAX_KERNEL(11, "v11_grid", "blocks of the whole card share a row, by a cooperative launch", launch, .blocks = {0},
               .exp = softmax::Exp::shifted, .divide = softmax::Divide::reciprocal, .alignment = 2, .types = kTypes,
               .in_place = true, .temperature = true, .keeps_workspace = true, .supports = supports,
               .workspace = workspace, .rounding = rounding, .plans = kPlans, .plan = plan)
