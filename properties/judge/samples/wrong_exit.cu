// Wrong: computes nothing, and ends the program as if all were well.
// launch: leave()
#include <cstdio>
#include <cstdlib>

__global__ void softmax(float* out) { out[0] = 1; }

void leave() {
  std::printf("verdict: RIGHT\n");
  std::exit(0);
}
