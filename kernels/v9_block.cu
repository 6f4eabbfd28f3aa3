// Idea: a row in the registers of a block, what they cannot hold in its shared memory. Several blocks on a
//   multiprocessor: while one waits for its barrier, others load and store.
// Against the previous: rows 50 times as long; warps find their own (max, sum) and exchange it at one barrier.
// Cost: 1 read and 1 write of every element; 1 barrier; two exps an element, for the sum and for the output.
// Limit: 512 threads of 25 vectors, 51200 columns of fp32, or registers and 227 KB.
#include "kernels/collective/exchange.hpp"
#include "kernels/collective/launch.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax;
using namespace softmax::collective;

// Blocks a multiprocessor that registers must allow: 32, 40, 64 or 128 of them a thread.
template <int Threads, int Vectors>
constexpr int kResident = (Vectors <= 2   ? 2048
                           : Vectors <= 4 ? 1536
                           : Vectors <= 8 ? 1024
                                          : 512) /
                          Threads;

// Regular: rows begin at vectors, have whole ones, and need no shared memory. Few short rows wait for every instruction before
// their load, and for every step from there to the store.
template <class In, class Out, int Threads, int Vectors, bool Regular>
__global__ void __launch_bounds__(Threads, kResident<Threads, Vectors>) softmax_v9(Args a) {
  using Part = Slice<In, Out, Threads, Vectors>;
  SHARED(pairs, std::uint64_t[32]);
  const long row = blockIdx.x;
  const In* x = static_cast<const In*>(a.in) + row * a.in_stride;
  Out* y = static_cast<Out*>(a.out) + row * a.out_stride;
  if constexpr (Regular) {
    Part part(int(threadIdx.x));
    begin(a, part, [&] { part.take_regular(x, int(a.cols) / Part::kN); });
    part.load_regular();
    const auto scale = scale_of<Out>(a, row);
    const float max = lanes_max<32>(part.max());
    const MaxSum of_warp = {max, lanes_sum<32>(part.sum(max, scale))};
    part.store_regular(y, block_exchange<Threads>(of_warp, pairs, coarse(scale)), scale);
  } else {
    SHARED_DYNAMIC(staged, typename Part::Vector);
    Part part(int(threadIdx.x), staged, a.shared);
    begin(a, part, [&] { part.take(x, a.cols); });
    part.load(a.once);
    const auto scale = scale_of<Out>(a, row);
    const MaxSum of_warp = warp_merge(part.reduce({-INFINITY, 0}, coarse(scale)), coarse(scale));
    part.store(y, block_exchange<Threads>(of_warp, pairs, coarse(scale)), scale);
  }
}

// The last three are for few rows and taken where `tune` found them faster.
#define INSTANCES(X) \
  X(64, 1)           \
  X(64, 2)           \
  X(128, 2) X(256, 2) X(512, 2) X(512, 4) X(512, 8) X(1024, 8) X(512, 16) X(512, 25) X(128, 1) X(256, 1) X(512, 1)
#define PLAN(threads, vectors) Plan{threads, vectors},
#define ANY(threads, vectors) softmax_v9<In, Out, threads, vectors, false>,
#define REGULAR(threads, vectors) softmax_v9<In, Out, threads, vectors, (vectors <= 2)>,
constexpr List<Plan> kPlans = {INSTANCES(PLAN)};
template <class In, class Out>
struct Of {  // first those for any row
  static Instance at(int i) {
    static constexpr Instance all[] = {INSTANCES(ANY) INSTANCES(REGULAR)};
    return all[i];
  }
};

// The largest that is chosen: for longer rows shared memory is faster than more registers. 16-bit rows have more to do for a
// byte and want two blocks on a multiprocessor.
int last(const Problem& p) { return vector_elements(p.types()) == 8 ? 6 : 7; }

// The first whose registers hold the row, or what was asked for, with as much shared memory as the row wants.
int find(const Problem& p, Plan& found) {
  found = {};
  for (int i = 0; i < kPlans.size() && p.plan.blocks <= 1; ++i) {
    const Plan& have = kPlans[i];
    const bool asked = p.plan.threads == have.threads && p.plan.vectors == have.vectors;
    if (p.plan.threads != 0 ? !asked : i > last(p)) continue;
    const long rest = divide_up(slice_vectors(p, have.threads, 1), have.threads) - have.vectors;
    const long shared = rest > 0 ? rest : 0;
    if (shared > 0 && !asked && i != last(p)) continue;
    if (shared * have.threads * vector_bytes(p.types()) > device::limits().shared_per_block - 1024) continue;
    found = {have.threads, have.vectors, int(shared), 1};
    return i;
  }
  return -1;
}
constexpr auto plan = planned<find>;
std::string supports(const Problem& p) {
  return plan(p).threads ? "" : "the row is too long for a block, or for the plan";
}
Rounding rounding(const Problem& p) {
  const Plan by = plan(p);
  return {additions(by, p.types()) + levels(by.threads), rescales(by, p.types()) + 2};
}

void launch(const Problem& p) {
  Plan by;
  const int i = find(p, by);
  Args a = args_of(p, by);
  a.early = p.overlap && leaves_room(p.rows, by.threads);
  const bool whole = by.shared == 0 && regular(p);
  device::launch(instance<Of>(p.types(), whole ? kPlans.size() + i : i), grid_of(p, by, p.rows), a);
}

}  // namespace

SOFTMAX_KERNEL(9, "v9_block", "a block a row, which waits in registers and shared memory", launch, .blocks = {0},
               .exp = softmax::Exp::shifted, .divide = softmax::Divide::reciprocal, .alignment = 2, .types = kTypes,
               .in_place = true, .temperature = true, .supports = supports, .rounding = rounding, .plans = kPlans,
               .plan = plan)
