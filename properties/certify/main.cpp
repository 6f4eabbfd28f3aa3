// certify: holds a machine's exps against double, at all floats of [-104, -0], and writes one line of CSV for each.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "properties/certify/certify.hpp"
#include "softmax_build.hpp"  // generated at build time: git revision

namespace {

constexpr const char* kUsage =
    R"(Holds the exps that the kernels use against exp in double, at every float from -0 to -104, and prints CSV.

usage: certify [--device=gpu|cpu] [--step=N]
  --device=gpu|cpu  where to run; default: the GPU if there is one
  --step=N          only every N-th float. Default: 1 on a GPU, seconds; 4096 on the CPU device

Columns: kappa, what the rounded product x * log2(e) costs, in units of u = 2^-24 for each unit of |x|; eps0, so that the
relative error of exp(x) >= 2^-126 is at most (eps0 + kappa |x|) u; max_ulp in spacings of floats, and x there; below: the
error where exp(x) < 2^-126, in units of 2^-149; rises: neighbours of which the smaller has the larger exp, and rise_u by
how much at most; most: the largest exp; at_zero: exp(-0).
)";

int run(int argc, char** argv) {
  using namespace softmax;
  std::string device;
  long step = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    char* end = nullptr;
    if (flag == "--help" || flag == "-h") return std::fputs(kUsage, stdout), 0;
    if (flag == "--device=gpu" || flag == "--device=cpu") {
      device = flag.substr(9);
    } else if (flag.starts_with("--step=") && (step = std::strtol(flag.c_str() + 7, &end, 10)) > 0 && *end == 0 &&
               step < 1L << 31) {
    } else {
      std::fprintf(stderr, "certify: %s: unknown; see --help\n", flag.c_str());
      return 2;
    }
  }
  Machine* chosen = nullptr;
  for (const certify::Exp& exp : certify::exps()) {
    Machine& machine = exp.machine();
    if (!machine.unavailable().empty() || (!device.empty() && machine.id() != device)) continue;
    if (!chosen || chosen->simulated()) chosen = &machine;
  }
  if (!chosen) {
    std::fprintf(stderr, "certify: no such device here\n");
    return 2;
  }
  chosen->watch(Watch::off);
  const std::uint32_t every = std::uint32_t(step > 0 ? step : chosen->simulated() ? 4096 : 1);
  std::printf("device,math,git_sha,exp,step,values,kappa,eps0,max_ulp,at,below,rises,rise_u,most,at_zero,what\n");
  for (const certify::Exp& exp : certify::exps()) {
    if (&exp.machine() != chosen) continue;
    const certify::Answer a = certify::survey(exp, every);
    std::printf("%s,%s,%s,%s,%u,%u,%g,%.6g,%.6g,%.9g,%.6g,%u,%.6g,%.9g,%.9g,%s\n", chosen->name().c_str(),
                std::string(chosen->math()).c_str(), SOFTMAX_GIT_SHA, std::string(exp.name).c_str(), every, a.values,
                certify::documented(exp).kappa, a.excess, a.max_ulp, double(a.at), a.below, a.rises, a.rise,
                double(a.most), double(certify::at_zero(exp)), std::string(exp.what).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "certify: %s\n", e.what());
    return 1;
  }
}
