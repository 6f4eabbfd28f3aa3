#pragma once
// A slice of a row, kept on chip between its one read and its one write: in registers, and what these cannot hold in shared
// memory. The same at every scope: a group of lanes, a block, a cluster or the blocks of a grid share a row, each slice
// finds its (max, sum), they exchange, each writes its own.

#include <cfloat>

#include "kernels/collective/element.hpp"
#include "kernels/collective/online.hpp"
#include "kernels/kernel.hpp"

namespace softmax::collective {
inline namespace SOFTMAX_BACKEND {

// What a launch is told; 64-bit, in elements.
struct Args {
  const void* in;
  void* out;
  long rows, cols, in_stride, out_stride;
  FineScale scale;            // log2(e) / temperature
  const float* temperatures;  // of each row, or null
  int shared;                 // vectors of a thread in shared memory
  int blocks;                 // that share a row
  long share;                 // vectors of a slice
  void* workspace;
  bool overlap;        // the launch may have begun early
  bool early = false;  // and finds room beside the one ahead of it
  bool once = false;   // all of it is on chip at one time: what was read may leave the cache first
  unsigned apart = 0;  // of the first blocks, that begin together: how many begin one after another
};
// Of a temperature so low that the quotient would be infinite: all but the maximum are 0 all the same.
__host__ __device__ __forceinline__ float scale_at(float temperature) {
  const float scale = kLog2E / temperature;
  return scale > FLT_MAX ? FLT_MAX : scale;  // of a NaN it is one
}
__host__ __device__ __forceinline__ FineScale fine_scale_at(float temperature) {
  const float scale = scale_at(temperature), lacks = fmaf(-scale, temperature, kLog2E) + kLog2ERest;
  return {scale, scale == FLT_MAX ? 0.0f : lacks * (scale * kLn2)};
}
// Before the first access. In every block it would cost a launch of many short ones a fifth.
__device__ __forceinline__ void begin(const Args& a) {
  if (!a.overlap) return;
  device::grid_dependency_launch();
  device::grid_dependency_wait();
}
// The same where a block takes its part of the input first. With room beside the launch ahead L2 asks for it meanwhile:
// what that has yet to write it will write into L2. Without room waiting comes first, or launches are slower by a tenth.
template <class Part, class Take>
__device__ __forceinline__ void begin(const Args& a, const Part& part, Take take) {
  if (!a.early) begin(a);
  take();
  if (!a.early) return;
  device::grid_dependency_launch();
  part.prefetch();
  device::grid_dependency_wait();
}
// Blocks of a multiprocessor that begin together wait for their loads together, and then for each other: nobody uses memory.
__device__ __forceinline__ void step_apart(const Args& a) {
  constexpr int kCycles = 2;  // a block: 264 between two of a multiprocessor
  if (blockIdx.x < a.apart) device::pause(blockIdx.x * kCycles);
}
// Outputs of 16 bits are too short to show what a coarse one costs.
template <class Out>
__device__ __forceinline__ auto scale_of(const Args& a, long row) {
  if constexpr (sizeof(Out) == 4)
    return a.temperatures ? fine_scale_at(a.temperatures[row]) : a.scale;
  else
    return a.temperatures ? scale_at(a.temperatures[row]) : a.scale.scale;
}

// Whether the exps of the sum wait in registers, to be the outputs': of one vector, or where few lanes have more.
__host__ __device__ constexpr bool keeps(int threads, int vectors) {
  return vectors == 1 ? threads <= 32 : threads < 32;
}

// `Threads` threads that share a slice, each with `Vectors` vectors in registers. A vector has 16 bytes of the wider of the
// two types. Vectors begin where the row's address allows; what is left at both ends goes one by one.
template <class In, class Out, int Threads, int Vectors>
class Slice {
 public:
  static constexpr int kN = 16 / int(sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));  // elements of a vector
  // Many threads begin at a line of the cache, few at the next vector.
  static constexpr int kAlign = Threads >= 128 ? 128 / int(sizeof(In)) : kN;
  static constexpr int kEnds = (kAlign + kN - 2 + Threads - 1) / Threads;  // of a thread
  using Vector = Pack<In, kN>;

  // `staged` is shared memory for `shared * Threads` vectors of the input's.
  __device__ __forceinline__ Slice(int thread, Vector* staged = nullptr, int shared = 0)
      : thread_(thread), shared_(shared), staged_(staged) {}

  // Takes a row, or slice `part` of those of `share` vectors; the first has the ends. A row of no columns is nothing.
  __device__ __forceinline__ void take(const In* row, long cols) {
    const int whole = place(row, int(cols));
    span(row, 0, whole, true);
  }
  __device__ __forceinline__ void take(const In* row, long cols, int part, long share) {
    const int whole = place(row, int(cols)), first = part * int(share);
    span(row, min(whole, first), min(whole, first + int(share)), part == 0);
  }
  // Of a row that has nothing but whole vectors, `count` of them.
  __device__ __forceinline__ void take_regular(const In* row, int count) {
    row_ = row;
    count_ = count;
  }
  __device__ __forceinline__ void load_regular() {
#pragma unroll
    for (int v = 0; v < Vectors; ++v) {
      const int i = v * Threads + thread_;
      vector_[v] = i < count_ ? collective::load<In, kN>(row_ + i * kN, false) : nothing<In, kN>();
    }
  }
  // Of a slice that is too long to keep, the tile that registers hold. The first tile of the first slice has the ends.
  static constexpr long kTile = long(Threads) * Vectors;
  static __device__ __forceinline__ long tiles_of(long share) {
    return share > kTile ? (share + kTile - 1) / kTile : 1;
  }
  __device__ __forceinline__ void take_tile(const In* row, long cols, int part, long share, long tile) {
    const long whole = place(row, cols), from = part * share + tile * kTile, last = min(whole, part * share + share);
    span(row, min(last, from), min(last, from + kTile), part == 0 && tile == 0);
  }

  // Asks for what was taken.
  __device__ __forceinline__ void load(bool once = false) {
    const In* const at = vectors() + thread_ * kN;
    if (sizeof(In) == 4) {
      load_vectors(at, once);
    } else if (once) {
      load_vectors(at, true);
    } else {
      load_vectors(at, false);
    }
    if (shared_ > 0) {
      const int mine = staged();
#pragma unroll
      for (int batch = 0; batch < kBatches; ++batch) {
        for (int s = begin_of(batch), last = min(mine, begin_of(batch + 1)); s < last; ++s)
          __pipeline_memcpy_async(staged_ + s * Threads + thread_, at + (kTile + long(s) * Threads) * kN,
                                  sizeof(Vector));
        __pipeline_commit();
      }
    }
    if (ends_)
#pragma unroll
      for (int e = 0; e < kEnds; ++e) {
        const long column = end(e);
        end_[e] = column >= 0 ? to_float(row_[column]) : -INFINITY;
      }
  }
  // Lets L2 ask for it.
  __device__ __forceinline__ void prefetch() const {
    if constexpr (Threads >= 128)
      if (thread_ == 0 && count_ > 1)
        device::bulk_prefetch(vectors(), unsigned(count_) * unsigned(sizeof(Vector)) / 16 * 16);
  }

  // This thread's, of registers alone.
  __device__ __forceinline__ float max() const {
    float most = -INFINITY;
    if (ends_)
#pragma unroll
      for (int e = 0; e < kEnds; ++e) most = fmaxf(most, end_[e]);
    return fmaxf(most, max_of<Vectors>(vector_));
  }
  template <class Scale>
  __device__ __forceinline__ float sum(float max, Scale of_output) {
    const auto scale = of_sum(of_output);
    max = anchor(max);
    float sum = 0;
    if (ends_)
#pragma unroll
      for (int e = 0; e < kEnds; ++e) sum += shifted_exp(end_[e], max, scale);
#pragma unroll
    for (int v = 0; v < Vectors; ++v) {
      keep(vector_[v]);
      if constexpr (kKeep) {
        unpack(vector_[v], kept_[v]);
        float of_vector = Vectors == 1 ? sum : 0;
#pragma unroll
        for (int i = 0; i < kN; ++i) of_vector += kept_[v][i] = shifted_exp(kept_[v][i], max, scale);
        sum = Vectors == 1 ? of_vector : sum + of_vector;
      } else {
        sum += vector_sum(vector_[v], max, scale);
      }
    }
    return sum;
  }
  // This thread's (max, sum), and that of what came before. What has arrived is calculated while the rest is on its way.
  __device__ __forceinline__ MaxSum reduce(MaxSum all, float scale) {
#pragma unroll
    for (int first = 0; first + kGroup <= Vectors; first += kGroup) all = fold<kGroup>(all, vector_ + first, scale);
    if constexpr (Vectors % kGroup != 0) all = fold<Vectors % kGroup>(all, vector_ + Vectors - Vectors % kGroup, scale);
    if (ends_) {
      float most = all.max;
#pragma unroll
      for (int e = 0; e < kEnds; ++e) most = fmaxf(most, end_[e]);
      all = rescaled(all, most, scale);
#pragma unroll
      for (int e = 0; e < kEnds; ++e) all.sum += shifted_exp(end_[e], anchor(most), scale);
    }
    if (shared_ > 0) {
      const int mine = staged();
#pragma unroll
      for (int batch = 0; batch < kBatches; ++batch) {
        __pipeline_wait_prior(kBatches - 1 - batch);
        for (int s = begin_of(batch), last = min(mine, begin_of(batch + 1)); s < last; s += kStagedGroup) {
          Vector some[kStagedGroup];
#pragma unroll
          for (int i = 0; i < kStagedGroup; ++i)
            some[i] = s + i < last ? staged_[(s + i) * Threads + thread_] : nothing<In, kN>();
          all = fold<kStagedGroup>(all, some, scale);
        }
      }
    }
    return all;
  }
  // After load_regular.
  template <class Scale>
  __device__ __forceinline__ void store_regular(Out* row, MaxSum all, Scale scale) {
    const float max = anchor(all.max), factor = 1.0f / all.sum;
#pragma unroll
    for (int v = 0; v < Vectors; ++v) {
      const Words words = output(v, max, factor, scale);
      if (left() > v * Threads) collective::store<Out, kN>(row + (v * Threads + thread_) * kN, words.word);
    }
  }
  // Writes the softmax of the slice, whose row has this (max, sum). All threads of a warp call.
  template <class Scale>
  __device__ __forceinline__ void store(Out* row, MaxSum all, Scale scale) {
    const float max = anchor(all.max), factor = 1.0f / all.sum;
    if (ends_)
#pragma unroll
      for (int e = 0; e < kEnds; ++e)
        if (const long column = end(e); column >= 0) from_float(shifted_exp(end_[e], max, scale) * factor, row[column]);
    Out* to = row + head_ + first_ * kN;
    const int astray = int(reinterpret_cast<std::uintptr_t>(to) / sizeof(Out) % kN);
    const bool aligned = Threads < 32 ? !__any_sync(kAll, astray != 0) : astray == 0;
    const int mine = shared_ > 0 ? staged() : 0;
    if (aligned) {
      to += thread_ * kN;
#pragma unroll
      for (int v = 0; v < Vectors; ++v) {
        const Words words = output(v, max, factor, scale);
        if (left() > v * Threads) collective::store<Out, kN>(to + v * Threads * kN, words.word);
      }
      to += kTile * kN;
#pragma unroll 2
      for (int s = 0; s < mine; ++s, to += Threads * kN)
        collective::store<Out, kN>(to, output(staged_[s * Threads + thread_], max, factor, scale).word);
    } else {
#pragma unroll
      for (int v = 0; v < Vectors; ++v) {
        put(to, v * Threads, output(v, max, factor, scale), astray);
      }
      for (int s = 0; s < shared_ && (Vectors + s) * Threads < count_; ++s)
        put(to, (Vectors + s) * Threads,
            output(s < mine ? staged_[s * Threads + thread_] : nothing<In, kN>(), max, factor, scale), astray);
    }
  }

 private:
  using Words = Pack<Out, kN>;
  template <class Scale>
  static __device__ __forceinline__ auto of_sum(Scale scale) {
    if constexpr (kKeep)
      return scale;
    else
      return coarse(scale);
  }

  // A `once` that is known here lets a thread's loads leave together: right for 16 bits. Asking before each of them is better
  // for 32, by 5 % at 8192 columns (kernels/NOTES.md).
  __device__ __forceinline__ void load_vectors(const In* at, bool once) {
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
      vector_[v] = left() > v * Threads ? collective::load<In, kN>(at + v * Threads * kN, once) : nothing<In, kN>();
  }
  // Vectors from this thread's first on.
  __device__ __forceinline__ int left() const { return count_ - thread_; }
  static constexpr int kLanes = Threads < 32 ? Threads : 32;

  // Where the row's vectors begin; returns how many it has.
  template <class Integer>
  __device__ __forceinline__ Integer place(const In* row, Integer cols) {
    const int astray = int(reinterpret_cast<std::uintptr_t>(row) / sizeof(In) % kAlign);
    head_ = int(min(cols, Integer((kAlign - astray) % kAlign)));
    const Integer whole = (cols - head_) / kN;
    cols_ = cols;
    tail_ = int(cols - head_ - whole * kN);
    return whole;
  }
  // Takes the vectors from `first` up to `last`, and the row's ends.
  __device__ __forceinline__ void span(const In* row, long first, long last, bool ends) {
    row_ = row;
    first_ = first;
    count_ = int(last - first);
    ends_ = ends && head_ + tail_ > 0;
  }
  __device__ __forceinline__ const In* vectors() const { return row_ + head_ + first_ * kN; }
  // The vectors in shared memory come in batches, these in registers are looked at in groups.
  static constexpr int kBatches = 4, kGroup = 16 / kN, kStagedGroup = Vectors < 4 ? 1 : 2;
  __device__ __forceinline__ int begin_of(int batch) const { return shared_ * batch / kBatches; }
  // This thread's vectors there.
  __device__ __forceinline__ int staged() const {
    const int rest = count_ - int(kTile) - thread_;
    return rest > 0 ? int(unsigned(rest + Threads - 1) / Threads) : 0;
  }
  // The column of the thread's e-th end, or -1.
  __device__ __forceinline__ long end(int e) const {
    const int i = e * Threads + thread_;
    return i < head_ ? i : i - head_ < tail_ ? cols_ - tail_ + (i - head_) : -1;
  }
  // Without it the compiler keeps what it unpacked in the pass before: twice the registers.
  __device__ __forceinline__ static void keep([[maybe_unused]] Vector& v) {
#if SOFTMAX_BACKEND_CUDA
    if constexpr (sizeof(In) == 2)
#pragma unroll
      for (int w = 0; w < Vector::kWords; ++w) asm volatile("" : "+r"(v.word[w]));
#endif
  }
  // `after`: of 16-bit numbers the compiler would take all maxima before the first exp, and wait for all loads. So they begin
  // with two NaNs, of either type, which count for nothing, made of what must come before.
  template <int Count>
  __device__ __forceinline__ static float max_of(const Vector* some, [[maybe_unused]] float after = 0) {
    constexpr int kWords = Vector::kWords;
    if constexpr (sizeof(In) == 4) {
      float most = __uint_as_float(some[0].word[0]);
#pragma unroll
      for (int w = 1; w < Count * kWords; ++w) most = fmaxf(most, __uint_as_float(some[w / kWords].word[w % kWords]));
      return most;
    } else {
      unsigned most = __float_as_uint(after) | 0xffe0ffe0u;
#pragma unroll
      for (int w = 0; w < Count * kWords; ++w) most = larger(most, some[w / kWords].word[w % kWords], In());
      const float2 two = widen(most, In());
      return fmaxf(two.x, two.y);
    }
  }
  __device__ __forceinline__ static float vector_sum(const Vector& v, float max, float scale) {
    float x[kN], sum = 0;
    unpack(v, x);
#pragma unroll
    for (int i = 0; i < kN; ++i) sum += shifted_exp(x[i], max, scale);
    return sum;
  }

  // `all` and these vectors together.
  template <int Count>
  __device__ __forceinline__ static MaxSum fold(MaxSum all, Vector* some, float scale) {
    const float most = fmaxf(all.max, max_of<Count>(some, all.sum));
    all = rescaled(all, most, scale);
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      keep(some[i]);
      all.sum += vector_sum(some[i], anchor(most), scale);
    }
    return all;
  }
  template <class Scale>
  __device__ __forceinline__ static Words output(const Vector& v, float max, float factor, Scale scale) {
    float y[kN];
    unpack(v, y);
#pragma unroll
    for (int i = 0; i < kN; ++i) y[i] = shifted_exp(y[i], max, scale) * factor;
    return pack<Out, kN>(y);
  }
  // Of the thread's v-th in registers.
  template <class Scale>
  __device__ __forceinline__ Words output(int v, float max, float factor, Scale scale) {
    if constexpr (kKeep) {
      float y[kN];
#pragma unroll
      for (int i = 0; i < kN; ++i) y[i] = kept_[v][i] * factor;
      return pack<Out, kN>(y);
    } else {
      keep(vector_[v]);
      return output(vector_[v], max, factor, scale);
    }
  }

  // Writes the vectors from `first` on, one a thread, where the output is not aligned as the input is: each lane makes an
  // aligned vector of its own and the next lane's elements; what has no neighbour goes one by one.
  __device__ __forceinline__ void put(Out* to, int first, const Words& mine, int astray) const {
    const int at = first + thread_;
    Out* const place = to + long(at) * kN;
    const int lane = thread_ % kLanes, skip = (kN - astray) % kN;  // elements before the first aligned place
    unsigned both[2 * Words::kWords];
#pragma unroll
    for (int w = 0; w < Words::kWords; ++w) {
      both[w] = mine.word[w];
      both[Words::kWords + w] = __shfl_down_sync(kAll, mine.word[w], 1, kLanes);
    }
    if (at >= count_) return;
    const bool last = lane == kLanes - 1 || at + 1 >= count_;
    const int bytes = skip * int(sizeof(Out));
#pragma unroll
    for (int step = Words::kWords / 2; step > 0; step /= 2)
      if (bytes & 4 * step)
#pragma unroll
        for (int w = 0; w < 2 * Words::kWords - step; ++w) both[w] = both[w + step];
    if constexpr (sizeof(Out) == 2)
      if (bytes & 2)
#pragma unroll
        for (int w = 0; w < Words::kWords; ++w) both[w] = __funnelshift_r(both[w], both[w + 1], 16);
    if (!last || skip == 0) {
      unsigned word[Words::kWords];
#pragma unroll
      for (int w = 0; w < Words::kWords; ++w) word[w] = both[w];
      collective::store<Out, kN>(place + skip, word);
    }
#pragma unroll
    for (int i = 0; i < kN; ++i)
      if (skip != 0 && ((lane == 0 && i < skip) || (last && i >= skip))) store_one(place + i, mine, i);
  }

  int thread_, shared_;
  Vector* staged_;
  const In* row_ = nullptr;
  long cols_ = 0, first_ = 0;
  int count_ = 0, head_ = 0, tail_ = 0;
  bool ends_ = false;
  static constexpr bool kKeep = keeps(Threads, Vectors);
  float kept_[kKeep ? Vectors : 1][kN];
  Vector vector_[Vectors];
  float end_[kEnds];
};

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::collective
