// Right at first; from its second launch on, some outputs are off by a bit, as a race or a stale cache would have them.
#include "properties/sabotage/skeleton.hpp"

namespace {

struct Off : softmax::sabotage::Right {
  __device__ static float output(float e, float sum, long, long) { return e / sum * 0.99999994f; }
};

void launch(const softmax::Problem& p) {
  static int launches = 0;
  if (launches++ % 2)
    softmax::sabotage::launch<Off>(p);
  else
    softmax::sabotage::launch<softmax::sabotage::Right>(p);
}

}  // namespace

SOFTMAX_KERNEL(921, "forgetful", "not the same bits every time", launch, .blocks = {32},
               .algorithm = softmax::Algorithm::safe, .summation = softmax::Summation::block_serial)
