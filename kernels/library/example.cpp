// From logits to probabilities on a GPU: softmax of bf16 logits in a stream, captured once and replayed. Copy it; it needs
// softmax::softmax, which brings the CUDA runtime.
#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <softmax/softmax.hpp>
#include <stdexcept>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

int main() try {
  constexpr std::int64_t kRows = 4, kCols = 128256;  // a batch of 4 and the vocabulary of Llama 3
  std::vector<std::uint16_t> logits(kRows * kCols);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = std::uint16_t(std::bit_cast<std::uint32_t>(float(i * 37 % 101) / 16) >> 16);  // bf16

  cudaStream_t stream;
  std::uint16_t* in;
  float* out;
  check(cudaStreamCreate(&stream));
  check(cudaMalloc(&in, logits.size() * sizeof *in));
  check(cudaMalloc(&out, logits.size() * sizeof *out));
  check(cudaMemcpy(in, logits.data(), logits.size() * sizeof *in, cudaMemcpyHostToDevice));

  softmax::Problem p{.rows = kRows,
                     .cols = kCols,
                     .in_stride = kCols,
                     .out_stride = kCols,
                     .in_type = softmax::DataType::bf16,
                     .out_type = softmax::DataType::fp32,
                     .in = in,
                     .out = out,
                     .temperature = 0.7f,
                     .stream = stream};
  if (const std::int64_t bytes = softmax::workspace_bytes(p)) {
    check(cudaMalloc(&p.workspace, std::size_t(bytes)));
    check(cudaMemset(p.workspace, 0, std::size_t(bytes)));  // once: the library keeps it in order from then on
  }
  std::printf("%s\n", softmax::picked(p).c_str());

  cudaGraph_t graph;
  cudaGraphExec_t replay;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  softmax::forward(p);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&replay, graph, 0));
  for (int step = 0; step < 3; ++step) check(cudaGraphLaunch(replay, stream));
  check(cudaStreamSynchronize(stream));

  std::vector<float> y(logits.size());
  check(cudaMemcpy(y.data(), out, y.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (std::int64_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (std::int64_t c = 0; c < kCols; ++c) sum += y[std::size_t(r * kCols + c)];
    std::printf("row %d adds up to %.6f\n", int(r), sum);
    if (!(std::abs(sum - 1) <= 0x1p-16)) return 1;  // well above what exp and a sum in float lose
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "example: %s\n", e.what());
  return 1;
}
