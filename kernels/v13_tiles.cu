// Idea: rows without gaps are one stream of bytes. A warp copies a tile of whole rows to shared memory by vectors, wherever
//   rows begin and end in them, works on rows there, and writes the tile back by vectors.
// Against the previous: V8's vectors are the row's own, and a row of 73 columns has 9 and a rest, which goes one by one.
// Cost: 1 read and 1 write of every element, twice through shared memory; no barrier of a block, one exp an element.
// Limit: dense rows. 32 lanes of 8 vectors: 1024 columns of fp32, 2048 of 16 bits.
#include "kernels/collective/launch.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax;
using namespace softmax::collective;

constexpr int kBlock = 128, kWarps = kBlock / 32;
// Blocks that registers must allow on a multiprocessor, by the elements that a lane keeps.
constexpr int resident(int elements) { return elements <= 16 ? 12 : elements <= 32 ? 8 : 4; }

// Elements of shared memory ahead of a tile: it begins there as far from a multiple of 16 bytes as in global memory, and
// vectors are vectors in both.
__host__ __device__ __forceinline__ int ahead(const void* at, int bytes) {
  return int(reinterpret_cast<std::uintptr_t>(at) % 16) / bytes;
}

// Some rows of a matrix, which follow each other. Whole: they begin at a multiple of 16 bytes.
template <class T, bool Whole>
class Tile {
  static constexpr int kN = 16 / int(sizeof(T));

 public:
  __device__ __forceinline__ Tile(uint4* shared, const void* first_row)
      : shared_(shared), first_(Whole ? 0 : ahead(first_row, sizeof(T))) {}

  __device__ __forceinline__ T* elements() const { return reinterpret_cast<T*>(shared_) + first_; }
  // Of `all` elements so many exist, the first ones; in the last tile the others become zeros, so that nobody need ask.
  __device__ __forceinline__ void read(const T* from, int exist, int all, int lane) const {
    const uint4* const x = reinterpret_cast<const uint4*>(from - first_);
#pragma unroll 4
    for (int v = begin() + lane; v < whole(exist); v += 32) __pipeline_memcpy_async(shared_ + v, x + v, sizeof(uint4));
    __pipeline_commit();
    ends(exist, lane, [&](int i) { elements()[i] = from[i]; });
    for (int i = exist + lane; i < all; i += 32) from_float(0, elements()[i]);
    __pipeline_wait_prior(0);
    __syncwarp();
  }
  __device__ __forceinline__ void write(T* to, int exist, int lane) const {
    uint4* const y = reinterpret_cast<uint4*>(to - first_);
    __syncwarp();
#pragma unroll 4
    for (int v = begin() + lane; v < whole(exist); v += 32) __stwb(y + v, shared_[v]);
    ends(exist, lane, [&](int i) { to[i] = elements()[i]; });
  }

 private:
  // Whole vectors that are the tile's.
  __device__ __forceinline__ int begin() const { return first_ > 0; }
  __device__ __forceinline__ int whole(int exist) const { return (first_ + exist) / kN; }
  template <class Copy>
  __device__ __forceinline__ void ends(int exist, int lane, Copy copy) const {
    const int head = first_ > 0 ? min(kN - first_, exist) : 0;
    for (int i = lane; i < head; i += 32) copy(i);
    for (int i = max(head, whole(exist) * kN - first_) + lane; i < exist; i += 32) copy(i);
  }

  uint4* const shared_;
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
template <class In, class Out, int Lanes, int Vectors, bool Whole>
__global__ void __launch_bounds__(kBlock,
                                  resident(Vectors * 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out))))
    softmax_v13(Args a) {
  SHARED_DYNAMIC(tiles, uint4);
  begin(a);
  const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32), tile_rows = int(a.share), cols = int(a.cols);
  const int first = int(blockIdx.x * (blockDim.x / 32) + warp) * tile_rows;  // of a billion at most
  if (first >= a.rows) return;
  const long at = long(first) * cols;
  const int exist = min(tile_rows, int(a.rows) - first) * cols;
  const In* const x = static_cast<const In*>(a.in) + at;
  Out* const y = static_cast<Out*>(a.out) + at;
  uint4* const tile = tiles + warp * a.shared;
  const Tile<In, Whole> in(tile, x);
  const Tile<Out, Whole> out(a.blocks < a.shared ? tile + a.blocks : tile, y);
  in.read(x, exist, tile_rows * cols, lane);

  const int rounds = tile_rows / (32 / Lanes), own = lane / Lanes * rounds;  // the first row of this lane
  const Rows<In, Out, Lanes, Vectors> rows(a, rounds);
  rows.softmax(in.elements() + own * cols, out.elements() + own * cols, first + own, lane % Lanes);
  out.write(y, exist, lane);
}

#define INSTANCES(X) X(1, 2) X(2, 2) X(4, 2) X(8, 2) X(16, 2) X(32, 2) X(32, 4) X(32, 8)
#define PLAN(lanes, vectors) Plan{lanes, vectors},
#define WHOLE(lanes, vectors) softmax_v13<In, Out, lanes, vectors, true>,
#define ANY(lanes, vectors) softmax_v13<In, Out, lanes, vectors, false>,
constexpr List<Plan> kPlans = {INSTANCES(PLAN)};
template <class In, class Out>
struct Of {  // first those of whole tiles
  static Instance at(int i) {
    static constexpr Instance all[] = {INSTANCES(WHOLE) INSTANCES(ANY)};
    return all[i];
  }
};

// The first that holds the row, or what was asked for if that does.
int find(const Problem& p, Plan& found) {
  found = {};
  if (p.in_stride != p.cols || p.out_stride != p.cols) return -1;
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
  if (p.in_stride != p.cols || p.out_stride != p.cols) return "rows must follow each other without a gap";
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
int in_ahead(const Problem& p) { return ahead(p.in, int(bytes_per_element(p.in_type))); }
int out_ahead(const Problem& p) { return ahead(p.out, int(bytes_per_element(p.out_type))); }
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
  const bool whole = in_ahead(p) == 0 && out_ahead(p) == 0;
  device::launch(instance<Of>(p.types(), whole ? i : kPlans.size() + i),
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
