#pragma once
// Rows from any address on, with gaps or without, between memory and a tile in a warp's shared memory.

#include "kernels/collective/launch.hpp"

namespace softmax::collective {
inline namespace SOFTMAX_BACKEND {

// The rows of a tile's input or output. In shared memory each begins at the same place in a vector as in global memory,
// so what is a vector there is one here; a gap is shorter by its whole vectors. Rows without gaps are one line.
struct Lines {
  int area, pitch;      // bytes in shared memory: where they begin, and from a row to the next
  long skip;            // bytes that are missing there between two rows
  unsigned reciprocal;  // 2^32 / the bytes of a line's vectors, rounded up
  bool joined;          // no gaps
};
inline int pitch_of(long cols, long stride, long size) { return int(cols * size + (stride - cols) * size % 16); }
// Of tiles of so many rows.
inline Lines lines_of(long cols, long stride, long size, long rows, int area) {
  const bool joined = stride == cols;
  const int pitch = pitch_of(cols, stride, size);
  const long vectors = (joined ? rows : 1) * cols * size / 16 * 16;
  const auto reciprocal = vectors > 0 ? unsigned(divide_up(1L << 32, vectors)) : 0;
  return {area, pitch, stride * size - pitch, reciprocal, joined};
}

template <class T>
__device__ __forceinline__ unsigned place_in_vector(T* at) {
  return unsigned(reinterpret_cast<std::uintptr_t>(at) % 16);
}
// Of a side whose first row is `at` in global memory: where that is in shared memory.
template <class T>
__device__ __forceinline__ char* first_row(const Lines& by, uint4* tile, T* at) {
  return reinterpret_cast<char*>(tile) + by.area + place_in_vector(at);
}

// Calls move(Piece(), at, skipped) for all that `rows` rows, of elements of `size` bytes, are made of: `at` bytes behind a
// vector's begin in shared memory, and `skipped` more in global memory. Vectors go by lanes in turn, then the ends of a
// line by one lane.
template <unsigned size, class Move>
__device__ __forceinline__ void each_piece(const Lines& by, unsigned place, unsigned rows, unsigned cols, unsigned lane,
                                           Move move) {
  const unsigned lines = by.joined ? 1 : rows, bytes = (by.joined ? rows : 1) * cols * size, vectors = bytes & ~15u;
  // i / vectors is exact: rounding the reciprocal up adds less than i / 2^32 to it, which is less than 1 / vectors, since
  // a tile has less than 2^16 bytes.
#pragma unroll 4
  for (unsigned i = 16 * lane; i < lines * vectors; i += 16 * 32) {
    const unsigned line = __umulhi(i, by.reciprocal), begin = place + line * by.pitch;
    const unsigned at = ((begin + 15) & ~15u) + i - line * vectors;
    if (at + 16 <= begin + bytes) move(uint4(), at, line * by.skip);
  }
  for (unsigned line = lane; line < lines; line += 32) {
    unsigned begin = place + line * by.pitch, end = begin + bytes;
    const long skipped = line * by.skip;
    // Once both ends are at multiples of 4, what is left is words, then pairs of them, then vectors.
    const auto peel = [&](auto piece) {
      constexpr unsigned n = sizeof(piece);
      if (begin < end && (begin & n) != 0) move(piece, begin, skipped), begin += n;
      if (begin < end && (end & n) != 0) end -= n, move(piece, end, skipped);
    };
    if constexpr (size == 2) peel(static_cast<unsigned short>(0));
    peel(0u), peel(uint2());
  }
}

// Brings `rows` rows of a tile of `all`: the others become zeros, so that nobody need ask.
template <class In>
__device__ __forceinline__ void copy_in(const Lines& by, uint4* tile, const In* from, int rows, int all, int cols,
                                        int lane) {
  const unsigned place = place_in_vector(from);
  char* const to = first_row(by, tile, from) - place;
  const char* const x = reinterpret_cast<const char*>(from) - place;
  each_piece<sizeof(In)>(by, place, rows, cols, lane, [&](auto piece, unsigned at, long skipped) {
    using Piece = decltype(piece);
    if constexpr (sizeof(Piece) >= 4)
      __pipeline_memcpy_async(to + at, x + skipped + at, sizeof(Piece));
    else
      *reinterpret_cast<Piece*>(to + at) = *reinterpret_cast<const Piece*>(x + skipped + at);
  });
  __pipeline_commit();
  In* const missing = reinterpret_cast<In*>(to + place + rows * by.pitch);
  for (int i = lane; i < (all - rows) * by.pitch / int(sizeof(In)); i += 32) from_float(0, missing[i]);
  __pipeline_wait_prior(0);
  __syncwarp();
}
template <class Out>
__device__ __forceinline__ void copy_out(const Lines& by, Out* to, uint4* tile, int rows, int cols, int lane) {
  const unsigned place = place_in_vector(to);
  const char* const from = first_row(by, tile, to) - place;
  char* const y = reinterpret_cast<char*>(to) - place;
  __syncwarp();
  each_piece<sizeof(Out)>(by, place, rows, cols, lane, [&](auto piece, unsigned at, long skipped) {
    using Piece = decltype(piece);
    __stwb(reinterpret_cast<Piece*>(y + skipped + at), *reinterpret_cast<const Piece*>(from + at));
  });
}

}  // namespace SOFTMAX_BACKEND
}  // namespace softmax::collective
