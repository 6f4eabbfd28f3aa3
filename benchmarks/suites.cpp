#include "benchmarks/suites.hpp"

#include <algorithm>

namespace softmax::bench {
namespace {

// 8 batches of 1024 tokens over GPT-2's vocabulary: the article's shape. 50257 is odd, so three rows of four start
// where no 16-byte access may; 1571 is odd too.
constexpr Shape kArticle{8192, 50257}, kArticleStandIn{32, 1571};

constexpr Shape kShapes[] = {
    kArticle,       {8192, 1024},  // attention scores: a row is one 4 KiB burst, so fixed costs of a row show
    {8192, 4096},                  // the widest row that 1024 threads hold in one float4 each
    {8192, 32000},                 // Llama 2's vocabulary: 125 KiB, a whole row fits shared memory
    {8192, 128256},  // Llama 3's vocabulary: 501 KiB, a row fits neither shared memory nor the registers of one block
};
constexpr Shape kStandIns[] = {
    kArticleStandIn, {32, 32},  // one element a lane
    {32, 128},                  // one float4 a lane
    {32, 1000},                 // 31.25 warps: the last one is not full
    {32, 4008},                 // more than any block has threads
};

}  // namespace

std::vector<Shape> shapes(Suite suite, bool simulated, Shape sample) {
  if (suite == Suite::ladder) {
    std::vector<Shape> ladder = {simulated ? kArticleStandIn : kArticle};
    if (simulated) sample.rows = std::min(sample.rows, kArticleStandIn.rows);
    if (sample.file) ladder.push_back(sample);
    return ladder;
  }
  if (simulated) return {std::begin(kStandIns), std::end(kStandIns)};
  return {std::begin(kShapes), std::end(kShapes)};
}

}  // namespace softmax::bench
