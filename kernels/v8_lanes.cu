// Idea: a short row needs few lanes: 1 to 32 of them share it, so a warp has up to 32 rows in flight.
// Against the previous: 1 read in place of 2: the row waits in registers. 16 bytes a load, and each type of element.
// Cost: 1 read and 1 write of every element; no barrier, no shared memory.
// Limit: 32 lanes of 16 vectors: 2048 columns of fp32, 4096 of 16 bits. Rows shorter than a vector go element by element.
#include "kernels/collective/launch.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax;
using namespace softmax::collective;

// Rows that take more registers go into smaller blocks, which begin and end more evenly; the card starts no more than
// a billion blocks a second, so short rows want large ones.
template <int Vectors>
constexpr int kBlock = Vectors == 1  ? 256
                       : Vectors < 8 ? 128
                                     : 32;
int block_of(int vectors) { return vectors == 1 ? kBlock<1> : vectors < 8 ? kBlock<2> : kBlock<8>; }

// Regular: rows begin at vectors, in and out, and have whole ones. Then registers are few enough for all the warps that a
// multiprocessor can have, or three quarters where few lanes have two vectors each.
template <int Lanes, int Vectors, bool Regular>
constexpr int kResident = !Regular                     ? 1
                          : Vectors == 1               ? 2048 / kBlock<1>
                          : Vectors == 2 && Lanes < 32 ? 1536 / kBlock<2>
                                                       : 1;
template <class In, class Out, int Lanes, int Vectors, bool Regular>
__global__ void __launch_bounds__(kBlock<Vectors>, kResident<Lanes, Vectors, Regular>) softmax_v8(Args a) {
  constexpr int kRows = kBlock<Vectors> / Lanes;
  using Part = Slice<In, Out, Lanes, Vectors>;
  begin(a);
  const int row = int(blockIdx.x * kRows + threadIdx.x / Lanes);  // of a billion at most
  const bool exists = row < a.rows;                               // the lanes of one that does not still shuffle
  const int r = exists ? row : 0, cols = exists ? int(a.cols) : 0;
  const In* x = static_cast<const In*>(a.in) + r * a.in_stride;
  Out* y = static_cast<Out*>(a.out) + r * a.out_stride;
  const auto scale = scale_of<Out>(a, r);
  Part part(int(threadIdx.x % Lanes));
  if constexpr (Regular)
    part.take_regular(x, cols / Part::kN), part.load_regular();
  else
    part.take(x, cols), part.load();
  const float max = lanes_max<Lanes>(part.max());
  const MaxSum all = {max, lanes_sum<Lanes>(part.sum(max, scale))};
  if constexpr (Regular)
    part.store_regular(y, all, scale);
  else
    part.store(y, all, scale);
}

#define CHOSEN(X) X(1, 1) X(2, 1) X(4, 1) X(8, 1) X(16, 1) X(32, 1) X(32, 2) X(32, 4) X(32, 8) X(32, 16)
// Of fewer steps between lanes and more vectors for each: taken where `tune` found them faster.
#define ASKED(X) X(2, 2) X(4, 2) X(8, 2) X(16, 2) X(4, 4) X(8, 4) X(16, 4)
#define INSTANCES(X) CHOSEN(X) ASKED(X)
#define PLAN(lanes, vectors) Plan{lanes, vectors},
#define REGULAR(lanes, vectors) softmax_v8<In, Out, lanes, vectors, true>,
#define ANY(lanes, vectors) softmax_v8<In, Out, lanes, vectors, false>,
constexpr List<Plan> kChosen = {CHOSEN(PLAN)}, kPlans = {INSTANCES(PLAN)};
template <class In, class Out>
struct Of {  // first all that are regular
  static Instance at(int i) {
    static constexpr Instance all[] = {INSTANCES(REGULAR) INSTANCES(ANY)};
    return all[i];
  }
};

// The first to be chosen that holds the row, or what was asked for if that does.
int index(const Problem& p) {
  const long need = p.cols / vector_elements(p.types());
  for (int i = 0; i < kPlans.size(); ++i) {
    const Plan& have = kPlans[i];
    const bool asked =
        p.plan.threads == 0 ? i < kChosen.size() : p.plan.threads == have.threads && p.plan.vectors == have.vectors;
    if (asked && have.threads * have.vectors >= need && p.plan.shared == 0 && p.plan.blocks <= 1) return i;
  }
  return -1;
}
Plan plan(const Problem& p) {
  const int i = index(p);
  return i < 0 ? Plan{} : Plan{kPlans[i].threads, kPlans[i].vectors, 0, 1};
}
std::string supports(const Problem& p) {
  return plan(p).threads ? "" : "the row is too long for a warp, or for the plan";
}
Rounding rounding(const Problem& p) {
  const Plan by = plan(p);
  const long n = vector_elements(p.types());  // one vector's elements are added to the ends one by one
  const long mine = by.vectors == 1 ? n - 1 + divide_up(2 * n - 2, by.threads) : additions(by, p.types());
  return {mine + levels(by.threads), 0, p.out_type != DataType::fp32 || keeps(by.threads, by.vectors)};
}

void launch(const Problem& p) {
  const int i = index(p);
  const int block = block_of(kPlans[i].vectors), rows = block / kPlans[i].threads;
  device::launch(instance<Of>(p.types(), regular(p) ? i : kPlans.size() + i),
                 {.blocks = unsigned(divide_up(p.rows, rows)),
                  .threads = unsigned(block),
                  .stream = p.stream,
                  .overlap = p.overlap},
                 args_of(p, plan(p)));
}

}  // namespace

SOFTMAX_KERNEL(8, "v8_lanes", "1 to 32 lanes a row, which waits in their registers", launch, .blocks = {0},
               .algorithm = softmax::Algorithm::safe, .exp = softmax::Exp::shifted,
               .divide = softmax::Divide::reciprocal, .alignment = 2, .types = kTypes, .in_place = true,
               .temperature = true, .supports = supports, .rounding = rounding, .plans = kPlans, .plan = plan)
