// Idea: rows without gaps are one stream of bytes. A warp copies a tile of whole rows to shared memory by vectors, wherever
//   rows begin and end in them, works on rows there, and writes the tile back by vectors.
// Against the previous: V8's vectors are the row's own, and a row of 73 columns has 9 and a rest, which goes one by one.
// Cost: 1 read and 1 write of every element, twice through shared memory; no barrier of a block, one exp an element.
//   Rows with gaps, or that begin astray, go by vectors too, and their ends by pieces of 8, 4 and 2 bytes.
// Limit: 32 lanes of 8 vectors: 1024 columns of fp32, 2048 of 16 bits.
#include "kernels/collective/lines.hpp"
#include "kernels/prelude.hpp"

namespace {

using namespace softmax;
using namespace softmax::collective;

constexpr int kBlock = 128, kWarps = kBlock / 32;
// Blocks that registers must allow on a multiprocessor, by the elements that a lane keeps.
constexpr int resident(int elements) { return elements <= 16 ? 12 : elements <= 32 ? 8 : 4; }

// Of a tile `elements` exist, the first ones; in the last tile the others become zeros, so that nobody need ask.
template <class In>
__device__ __forceinline__ void copy_in(uint4* tile, int vectors, const In* from, int elements, int lane) {
  constexpr int kN = 16 / int(sizeof(In));
  const uint4* const x = reinterpret_cast<const uint4*>(from);
  const int whole = elements / kN;
#pragma unroll 4
  for (int v = lane; v < whole; v += 32) __pipeline_memcpy_async(tile + v, x + v, sizeof(uint4));
  __pipeline_commit();
  for (int v = whole + lane; v < vectors; v += 32)
    for (int i = v * kN; i < v * kN + kN; ++i) {
      In* const to = reinterpret_cast<In*>(tile) + i;
      if (i < elements)
        *to = from[i];
      else
        from_float(0, *to);
    }
  __pipeline_wait_prior(0);
  __syncwarp();
}
template <class Out>
__device__ __forceinline__ void copy_out(Out* to, int elements, const uint4* tile, int lane) {
  constexpr int kN = 16 / int(sizeof(Out));
  uint4* const y = reinterpret_cast<uint4*>(to);
  const int whole = elements / kN;
  __syncwarp();
#pragma unroll 4
  for (int v = lane; v < whole; v += 32) __stwb(y + v, tile[v]);
  for (int i = whole * kN + lane; i < elements; i += 32) to[i] = reinterpret_cast<const Out*>(tile)[i];
}

// `Lanes` lanes take a row, of which lane l has the elements l, l + Lanes and so on: neighbours lie in other banks. They take
// `rounds` rows, one after the other. A row is written where it was read, if types have one size: by who read it.
template <class In, class Out, int Lanes, int Vectors>
class Rows {
 public:
  // Rows of the input and of the output are so many elements apart.
  __device__ __forceinline__ Rows(const Args& a, int rounds, int in_pitch, int out_pitch)
      : a_(a), rounds_(rounds), cols_(int(a.cols)), in_pitch_(in_pitch), out_pitch_(out_pitch) {}
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
    for (int round = 0; round < rounds_; ++round, ++row, x += in_pitch_, y += out_pitch_) {
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
  const int rounds_, cols_, in_pitch_, out_pitch_;
};

// a.share: rows of a tile; a.shared: vectors of a warp in shared memory. Regular: no gaps, and input and output begin at
// vectors, as then all their tiles do.
template <class In, class Out, int Lanes, int Vectors, bool Regular>
__global__ void __launch_bounds__(kBlock,
                                  resident(Vectors * 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out))))
    softmax_v13(Args a, Lines in, Lines out) {
  SHARED_DYNAMIC(tiles, uint4);
  begin(a);
  const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32), tile_rows = int(a.share), cols = int(a.cols);
  const int first = int(blockIdx.x * (blockDim.x / 32) + warp) * tile_rows;  // of a billion at most
  if (first >= a.rows) return;
  const int exist = min(tile_rows, int(a.rows) - first), all = tile_rows * cols;
  const In* const from = static_cast<const In*>(a.in) + (Regular ? long(first) * cols : first * a.in_stride);
  Out* const to = static_cast<Out*>(a.out) + (Regular ? long(first) * cols : first * a.out_stride);
  uint4 *const tile = tiles + warp * a.shared, *const result =
                                                   sizeof(In) == sizeof(Out) ? tile : tile + all * int(sizeof(In)) / 16;
  if constexpr (Regular)
    copy_in(tile, all * int(sizeof(In)) / 16, from, exist * cols, lane);
  else
    copy_in(in, tile, from, exist, tile_rows, cols, lane);

  const int rounds = tile_rows / (32 / Lanes), own = lane / Lanes * rounds;  // the first row of this lane
  if constexpr (Regular) {
    const Rows<In, Out, Lanes, Vectors> rows(a, rounds, cols, cols);
    rows.softmax(reinterpret_cast<const In*>(tile) + own * cols, reinterpret_cast<Out*>(result) + own * cols,
                 first + own, lane % Lanes);
    copy_out(to, exist * cols, result, lane);
  } else {
    const Rows<In, Out, Lanes, Vectors> rows(a, rounds, in.pitch / int(sizeof(In)), out.pitch / int(sizeof(Out)));
    rows.softmax(reinterpret_cast<const In*>(first_row(in, tile, from) + own * in.pitch),
                 reinterpret_cast<Out*>(first_row(out, tile, to) + own * out.pitch), first + own, lane % Lanes);
    copy_out(out, to, tile, exist, cols, lane);
  }
}

#define INSTANCES(X) X(1, 2) X(2, 2) X(4, 2) X(8, 2) X(16, 2) X(32, 2) X(32, 4) X(32, 8)
#define PLAN(lanes, vectors) Plan{lanes, vectors},
#define REGULAR(lanes, vectors) softmax_v13<In, Out, lanes, vectors, true>,
#define ANY(lanes, vectors) softmax_v13<In, Out, lanes, vectors, false>,
constexpr List<Plan> kPlans = {INSTANCES(PLAN)};
template <class In, class Out>
struct Of {  // first all that are regular
  using Instance = void (*)(Args, Lines, Lines);
  static Instance at(int i) {
    static constexpr Instance all[] = {INSTANCES(REGULAR) INSTANCES(ANY)};
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
// What the instance and the tiles depend on, in bytes.
struct Sides {
  explicit Sides(const Problem& p)
      : in(long(bytes_per_element(p.in_type))),
        out(long(bytes_per_element(p.out_type))),
        in_pitch(pitch_of(p.cols, p.in_stride, in)),
        out_pitch(pitch_of(p.cols, p.out_stride, out)) {
    const auto from = reinterpret_cast<std::uintptr_t>(p.in), to = reinterpret_cast<std::uintptr_t>(p.out);
    regular = p.in_stride == p.cols && p.out_stride == p.cols && from % 16 == 0 && to % 16 == 0;
    shared = in == out && in_pitch == out_pitch && from % 16 == to % 16;
  }
  long in, out, in_pitch, out_pitch;
  bool regular, shared;  // shared: a result takes its input's place
};
// Rows that a group of lanes takes, for tiles of some 4 KB: then 48 warps have room. Of the larger half of such numbers
// that whose groups meet in the fewest banks, and whose tiles begin at sectors. Regular tiles are whole vectors.
int rounds_of(const Problem& p, const Sides& by, int lanes) {
  constexpr long kTile = 4480, kTiles = 2;  // bytes; of a multiprocessor, if there are few rows
  const int groups = 32 / lanes;
  int step = 1;
  while (by.regular && step * groups * p.cols * by.in % 16 != 0) step *= 2;
  const long room = kTile / (groups * (by.in_pitch + (by.shared ? 0 : by.out_pitch))),
             few = p.rows / (kTiles * device::limits().multiprocessors * groups),
             last = (room < few ? room : few) / step;
  int best = step, least = 1 << 30;
  for (long n = last; n > last / 2; --n) {
    const int rounds = int(n) * step;
    int cost =
        2 * conflicts(rounds * by.in_pitch, groups, lanes, int(by.in)) + (rounds * groups * by.in_pitch % 32 != 0);
    if (!by.shared) cost += 2 * conflicts(rounds * by.out_pitch, groups, lanes, int(by.out));
    if (cost < least) best = rounds, least = cost;
  }
  return best;
}

void launch(const Problem& p) {
  Plan plan;
  const int i = find(p, plan);
  const Sides by(p);
  Args a = args_of(p, plan);
  a.share = 32 / plan.threads * rounds_of(p, by, plan.threads);
  // Vectors of a side; a first row may begin late in one.
  const auto vectors = [&](long pitch, long size) {
    return int(divide_up(a.share * pitch + (by.regular ? 0 : 16 - size), 16));
  };
  const int in = vectors(by.in_pitch, by.in), behind = by.shared ? 0 : in;
  a.shared = by.shared ? in : in + vectors(by.out_pitch, by.out);
  const int warps = a.shared <= 512 ? kWarps : 1;  // of rows so long that few tiles have room: as many as can be
  device::launch(instance<Of>(p.types(), by.regular ? i : kPlans.size() + i),
                 {.blocks = unsigned(divide_up(p.rows, a.share * warps)),
                  .threads = unsigned(32 * warps),
                  .shared = std::size_t(16 * a.shared * warps),
                  .stream = p.stream,
                  .overlap = p.overlap},
                 a, lines_of(p.cols, p.in_stride, by.in, a.share, 0),
                 lines_of(p.cols, p.out_stride, by.out, a.share, 16 * behind));
}

}  // namespace

SOFTMAX_KERNEL(13, "v13_tiles", "a warp copies a tile of whole rows by vectors, and 1 to 32 lanes take a row there",
               launch, .blocks = {0}, .algorithm = softmax::Algorithm::safe, .exp = softmax::Exp::shifted,
               .divide = softmax::Divide::reciprocal, .alignment = 2, .types = kTypes, .in_place = true,
               .temperature = true, .supports = supports, .rounding = rounding, .plans = kPlans, .plan = plan)
