// mutant MODULE.so [LAW GENERATOR]...: judges the one kernel of a module and prints "law,generator,cases,kill", as ask()
// counts them, for each of these pairs, or for all. A kernel may crash or hang: who calls it watches.

#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "properties/mutants/battery.hpp"

namespace softmax::properties {
namespace {

void judge(const Law& law, const Kernel& kernel, const std::string& only) {
  for (const auto& [generator, asked] : ask(law, kernel, only))
    std::printf("%s,%s,%d,%d\n", std::string(law.name).c_str(), generator.c_str(), asked.cases, asked.kill);
  std::fflush(stdout);
}

int judge_module(int argc, char** argv) {
  if (argc % 2 != 0) return std::fprintf(stderr, "mutant MODULE.so [LAW GENERATOR]...\n"), 2;
  if (!dlopen(argv[1], RTLD_NOW)) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  if (kernels().size() != 1) return std::fprintf(stderr, "%zu kernels, not one\n", kernels().size()), 2;
  const Kernel& kernel = *kernels()[0];
  if (argc == 2)
    for (const Law* law : laws(kernel)) judge(*law, kernel, "");
  for (int i = 2; i < argc; i += 2) judge(law(argv[i]), kernel, argv[i + 1]);
  return 0;
}

}  // namespace
}  // namespace softmax::properties

int main(int argc, char** argv) { return softmax::properties::judge_module(argc, argv); }
