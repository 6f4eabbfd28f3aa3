// Idea: rows without gaps are one stream of bytes. A warp copies a tile of whole rows to shared memory by vectors, wherever
//   rows begin and end in them, works on rows there, and writes the tile back by vectors.
// Against the previous: V8's vectors are the row's own, and a row of 73 columns has 9 and a rest, which goes one by one.
// Cost: 1 read and 1 write of every element, twice through shared memory; no barrier of a block, one exp an element. Rows with
//   gaps go by the largest units that rows and gaps consist of.
// Limit: 32 lanes of 8 vectors: 1024 columns of fp32, 2048 of 16 bits.
#include "kernels/collective/launch.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax;
using namespace softmax::collective;

constexpr int kBlock = 128, kWarps = kBlock / 32;
// Blocks that registers must allow on a multiprocessor, by the elements that a lane keeps.
constexpr int resident(int elements) { return elements <= 16 ? 12 : elements <= 32 ? 8 : 4; }

// Elements of shared memory ahead of a tile: without gaps it begins there as far from a multiple of 16 bytes as in global
// memory, and vectors are vectors in both.
__host__ __device__ __forceinline__ int ahead(const void* at, long gap, int bytes) {
  return gap == 0 ? int(reinterpret_cast<std::uintptr_t>(at) % 16) / bytes : 0;
}

// Some rows of a matrix, in shared memory one behind the other. T is const of the input.
template <class T>
class Tile {
  using Element = std::remove_const_t<T>;
  template <class Unit>
  using Global = std::conditional_t<std::is_const_v<T>, const Unit, Unit>;
  static constexpr int kSize = int(sizeof(T)), kN = 16 / kSize;

 public:
  __device__ __forceinline__ Tile(uint4* shared, T* rows, int cols, long gap)
      : shared_(shared), rows_(rows), cols_(cols), gap_(gap), first_(ahead(rows, gap, kSize)) {}

  __device__ __forceinline__ Element* elements() const { return reinterpret_cast<Element*>(shared_) + first_; }
  // Of `all` elements so many exist, the first ones; in the last tile the others become zeros, so that nobody need ask.
  __device__ __forceinline__ void read(int exist, int all, int lane) const {
    each(exist, lane, [](auto* to, const auto* from) {
      if constexpr (sizeof(*to) >= 4)
        __pipeline_memcpy_async(to, from, sizeof(*to));
      else
        *to = *from;
    });
    __pipeline_commit();
    for (int i = exist + lane; i < all; i += 32) from_float(0, elements()[i]);
    __pipeline_wait_prior(0);
    __syncwarp();
  }
  __device__ __forceinline__ void write(int exist, int lane) const {
    __syncwarp();
    each(exist, lane, [](const auto* from, auto* to) { __stwb(to, *from); });
  }

 private:
  // Calls copy(in shared memory, in global memory) with the largest units there are.
  template <class Copy>
  __device__ __forceinline__ void each(int exist, int lane, Copy copy) const {
    if (gap_ == 0) return stream(exist, lane, copy);
    const unsigned all =
        unsigned(reinterpret_cast<std::uintptr_t>(rows_)) | unsigned(cols_ * kSize) | unsigned(gap_ * kSize);
    if (all % 16 == 0) return units<uint4>(exist, lane, copy);
    if (all % 8 == 0) return units<uint2>(exist, lane, copy);
    if (kSize == 4 || all % 4 == 0) return units<unsigned>(exist, lane, copy);
    units<Element>(exist, lane, copy);
  }
  template <class Copy>
  __device__ __forceinline__ void stream(int exist, int lane, Copy copy) const {
    auto* const x = reinterpret_cast<Global<uint4>*>(rows_ - first_);
    const int whole = (first_ + exist) / kN, head = first_ > 0 ? min(kN - first_, exist) : 0;
#pragma unroll 4
    for (int v = (first_ > 0) + lane; v < whole; v += 32) copy(shared_ + v, x + v);
    for (int i = lane; i < head; i += 32) copy(elements() + i, rows_ + i);
    for (int i = max(head, whole * kN - first_) + lane; i < exist; i += 32) copy(elements() + i, rows_ + i);
  }
  // The row of unit i is that of the middle between i and i + 1, by a factor rounded up: right while i * in_row is below 2^30.
  template <class Unit, class Copy>
  __device__ __forceinline__ void units(int exist, int lane, Copy copy) const {
    constexpr int kUnit = int(sizeof(Unit));
    const unsigned in_row = unsigned(cols_ * kSize / kUnit), factor = ((1u << 31) + in_row - 1) / in_row;
    const long gap = gap_ * kSize / kUnit;
    auto* const x = reinterpret_cast<Global<Unit>*>(rows_);
    Unit* const tile = reinterpret_cast<Unit*>(shared_);
#pragma unroll 4
    for (int i = lane; i < exist * kSize / kUnit; i += 32)
      copy(tile + i, x + i + long(__umulhi(2 * i + 1, factor)) * gap);
  }

  uint4* const shared_;
  T* const rows_;
  const int cols_;
  const long gap_;
  const int first_;
};

// `Lanes` lanes take a row, of which lane l has the elements l, l + Lanes and so on: neighbours lie in other banks. They take
// `rounds` rows, one after the other. A row is written where it was read, if types have one size: by who read it.
template <class In, class Out, int Lanes, int Vectors>
class Rows {
 public:
  __device__ __forceinline__ Rows(const Args& a, int rounds) : a_(a), rounds_(rounds), cols_(int(a.cols)) {}
  __device__ __forceinline__ void softmax(const In* x, Out* y, int row, int lane) const {
    choose<kElements>(x + lane, y + lane, row, cols_ - lane);
  }

 private:
  static constexpr int kElements = Vectors * 16 / int(sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));
  static constexpr int kGrain = kElements / 8, kHalf = kElements / 2;

  // All rows have so many elements for a lane: code that is made for them asks only whether the last few are there.
  template <int Steps>
  __device__ __forceinline__ void choose(const In* x, Out* y, int row, int left) const {
    if constexpr (Steps > kHalf)
      if (cols_ <= (Steps - kGrain) * Lanes) return choose<Steps - kGrain>(x, y, row, left);
    constexpr int kSure = Steps > kHalf ? Steps - kGrain : 0;
    for (int round = 0; round < rounds_; ++round, ++row, x += cols_, y += cols_) {
      const auto scale = scale_of<Out>(a_, min(row, int(a_.rows) - 1));  // of a row that does not exist: any
      float e[Steps], most = -INFINITY, sum = 0;
#pragma unroll
      for (int k = 0; k < Steps; ++k) e[k] = k < kSure || k * Lanes < left ? to_float(x[k * Lanes]) : -INFINITY;
#pragma unroll
      for (int k = 0; k < Steps; ++k) most = fmaxf(most, e[k]);
      const float max = anchor(lanes_max<Lanes>(most));
#pragma unroll
      for (int k = 0; k < Steps; ++k) sum += e[k] = shifted_exp(e[k], max, scale);
      const float factor = 1.0f / lanes_sum<Lanes>(sum);
#pragma unroll
      for (int k = 0; k < Steps; ++k)
        if (k < kSure || k * Lanes < left) from_float(e[k] * factor, y[k * Lanes]);
    }
  }

  const Args& a_;
  const int rounds_, cols_;
};

// a.share: rows of a tile; a.shared: vectors of a warp in shared memory; a.blocks: those of its input, which the output shares
// if that is all.
template <class In, class Out, int Lanes, int Vectors>
__global__ void __launch_bounds__(kBlock,
                                  resident(Vectors * 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out))))
    softmax_v13(Args a) {
  SHARED_DYNAMIC(tiles, uint4);
  begin(a);
  const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32), tile_rows = int(a.share), cols = int(a.cols);
  const int first = int(blockIdx.x * (blockDim.x / 32) + warp) * tile_rows;  // of a billion at most
  if (first >= a.rows) return;
  const int exist = min(tile_rows, int(a.rows) - first) * cols;
  uint4* const tile = tiles + warp * a.shared;
  const Tile<const In> in(tile, static_cast<const In*>(a.in) + first * a.in_stride, cols, a.in_stride - cols);
  const Tile<Out> out(a.blocks < a.shared ? tile + a.blocks : tile, static_cast<Out*>(a.out) + first * a.out_stride,
                      cols, a.out_stride - cols);
  in.read(exist, tile_rows * cols, lane);

  const int rounds = tile_rows / (32 / Lanes), own = lane / Lanes * rounds;  // the first row of this lane
  const Rows<In, Out, Lanes, Vectors> rows(a, rounds);
  rows.softmax(in.elements() + own * cols, out.elements() + own * cols, first + own, lane % Lanes);
  out.write(exist, lane);
}

#define INSTANCES(X) X(1, 2) X(2, 2) X(4, 2) X(8, 2) X(16, 2) X(32, 2) X(32, 4) X(32, 8)
#define PLAN(lanes, vectors) Plan{lanes, vectors},
#define INSTANCE(lanes, vectors) softmax_v13<In, Out, lanes, vectors>,
constexpr List<Plan> kPlans = {INSTANCES(PLAN)};
template <class In, class Out>
struct Of {
  static Instance at(int i) {
    static constexpr Instance all[] = {INSTANCES(INSTANCE)};
    return all[i];
  }
};

// The first that holds the row, or what was asked for if that does.
int find(const Problem& p, Plan& found) {
  found = {};
  for (int i = 0; i < kPlans.size(); ++i) {
    const Plan& have = kPlans[i];
    const bool asked = p.plan.threads == 0 || (p.plan.threads == have.threads && p.plan.vectors == have.vectors);
    const bool holds = have.threads * have.vectors * vector_elements(p.types()) >= p.cols;
    if (!asked || !holds || p.plan.shared != 0 || p.plan.blocks > 1) continue;
    found = {have.threads, have.vectors, 0, 1};
    return i;
  }
  return -1;
}
constexpr auto plan = planned<find>;
std::string supports(const Problem& p) {
  return plan(p).threads ? "" : "the row is too long for a warp, or for the plan";
}
Rounding rounding(const Problem& p) {
  const long lanes = plan(p).threads;
  return {divide_up(p.cols, lanes) - 1 + levels(lanes), 0};  // what lies behind the row adds zeros
}

// Groups of lanes `apart` bytes from each other that meet in banks, when each reads one element a lane.
int conflicts(long apart, int groups, int lanes, int bytes) {
  const long wide = lanes * bytes + (bytes < 4 ? 2 : 0);
  int some = 0;
  for (int other = 1; other < groups; ++other)
    if (const long from = other * apart % 128; from < wide || from > 128 - wide) ++some;
  return some;
}
// Of a problem's matrix: elements ahead of a tile.
int in_ahead(const Problem& p) { return ahead(p.in, p.in_stride - p.cols, int(bytes_per_element(p.in_type))); }
int out_ahead(const Problem& p) { return ahead(p.out, p.out_stride - p.cols, int(bytes_per_element(p.out_type))); }
// Whether rows are written where they were read.
bool together(const Problem& p) {
  return bytes_per_element(p.in_type) == bytes_per_element(p.out_type) && in_ahead(p) == out_ahead(p);
}
// Rows that a group of lanes takes: tiles are whole vectors, of some 4 KB, for then 48 warps have room. Of the larger half of
// such numbers that whose groups meet in the fewest banks, and whose tiles begin at sectors.
int rounds_of(const Problem& p, int lanes) {
  constexpr long kTile = 4480, kTiles = 2;  // bytes; of a multiprocessor, if there are few rows
  const int in = int(bytes_per_element(p.in_type)), out = int(bytes_per_element(p.out_type)), groups = 32 / lanes;
  const long round = groups * p.cols;
  int step = 1;
  while (step * round * in % 16 != 0) step *= 2;
  const long room = kTile / (round * (together(p) ? in : in + out)),
             few = p.rows / (kTiles * device::limits().multiprocessors * groups),
             last = (room < few ? room : few) / step;
  int best = step, least = 1 << 30;
  for (long n = last; n > last / 2; --n) {
    const int rounds = int(n) * step;
    int cost = 2 * conflicts(rounds * p.cols * in, groups, lanes, in) + (rounds * round * in % 32 != 0);
    if (in != out) cost += 2 * conflicts(rounds * p.cols * out, groups, lanes, out);
    if (cost < least) best = rounds, least = cost;
  }
  return best;
}

void launch(const Problem& p) {
  Plan by;
  const int i = find(p, by);
  Args a = args_of(p, by);
  a.share = 32 / by.threads * rounds_of(p, by.threads);
  const auto vectors = [&](int ahead, DataType type) {
    return int(divide_up((ahead + a.share * p.cols) * long(bytes_per_element(type)), 16));
  };
  a.blocks = vectors(in_ahead(p), p.in_type);
  a.shared = together(p) ? a.blocks : a.blocks + vectors(out_ahead(p), p.out_type);
  const int warps = a.shared <= 512 ? kWarps : 1;  // of rows so long that few tiles have room: as many as can be
  device::launch(instance<Of>(p.types(), i),
                 {.blocks = unsigned(divide_up(p.rows, a.share * warps)),
                  .threads = unsigned(32 * warps),
                  .shared = std::size_t(16 * a.shared * warps),
                  .stream = p.stream,
                  .overlap = p.overlap},
                 a);
}

}  // namespace

SOFTMAX_KERNEL(13, "v13_tiles", "a warp copies a tile of whole rows by vectors, and 1 to 32 lanes take a row there",
               launch, .blocks = {0}, .algorithm = softmax::Algorithm::safe, .exp = softmax::Exp::shifted,
               .divide = softmax::Divide::reciprocal, .alignment = 2, .types = kTypes, .in_place = true,
               .temperature = true, .supports = supports, .rounding = rounding, .plans = kPlans, .plan = plan)
