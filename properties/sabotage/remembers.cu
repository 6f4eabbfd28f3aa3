// Keeps what it answered last, and takes the same addresses and shape for the same question.
#include "properties/sabotage/skeleton.hpp"

namespace {

void launch(const softmax::Problem& p) {
  static softmax::Problem last;
  if (p.in == last.in && p.out == last.out && p.rows == last.rows && p.cols == last.cols) return;
  last = p;
  softmax::sabotage::launch<softmax::sabotage::Right>(p);
}

}  // namespace

SOFTMAX_KERNEL(922, "remembers", "answers by address and shape", launch, .blocks = {32},
               .algorithm = softmax::Algorithm::safe, .summation = softmax::Summation::block_serial)
