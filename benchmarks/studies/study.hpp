#pragma once
// A study: an experiment that tests a claim of the article with kernels of its own. Writing one file adds one: every *.cu
// of this folder is compiled for both back ends, as kernel files are and under their rule: what is not a kernel is
// literals, function pointers and C's functions (kernels/device/simt/words.hpp says why).

#include <cstdint>

#include "kernels/kernel.hpp"
#include "kernels/machine.hpp"

namespace softmax::studies {

// One launch: a variant at one value of each parameter.
struct Problem {
  const float* in = nullptr;
  float* out = nullptr;
  std::int64_t elements = 0;  // of `in`; `out` has room for as many
  std::int64_t arg[2] = {};   // the axes' values
  int block = 0;              // threads a block
  void* stream = nullptr;     // the machine's
  bool simulated = false;     // then sizes are stand-ins that take the CPU device milliseconds
  bool fast = false;          // nvcc's fast math
};

// What one launch takes and does.
struct Cost {
  std::int64_t elements = 0, outputs = 0;  // floats that `in` holds, and that the launch writes from out[0] on
  std::int64_t bytes = 0;       // from and to memory, by the least that the task needs: GB/s; 0: none to speak of
  std::int64_t operations = 0;  // one after the other, or shared by all: ns/op is time over these; 0: none
};

struct Variant {
  const char* name = nullptr;  // the version of the row's name: lower case and '-'
  const char* idea = nullptr;
  void (*launch)(const Problem&) = nullptr;
  bool cuda_only = false;
  int capability = 0;  // the least, 80 for sm_80
};

struct Axis {
  const char* name = nullptr;  // none
  List<std::int64_t> values = {0};
  List<std::int64_t> stand_ins = {};  // the CPU device's, if they differ
};

struct Experiment;
// The input as the launch found it, on the host.
struct Input {
  const Experiment& experiment;
  const Problem& problem;
  float operator()(std::int64_t index) const;
  double max(std::int64_t first, std::int64_t count) const;  // of in[first] and those behind it

  mutable std::int64_t max_of_first = -1;  // what max() said last
  mutable double last_max = 0;
};
struct Want {
  double value, tolerance;  // |got - value| may be so large
};

// Every variant at every value of every axis and every block size, in every mode.
struct Experiment {
  const char* operation;  // the row's name begins with it: lower case and '-'
  Machine& (*machine)();
  List<Variant> variants;
  Axis axes[2] = {};
  List<int> blocks;
  List<Mode> modes;  // cold or hot
  Cost (*cost)(const Problem&);
  // What out[index] must hold. Called for all of a small input, and for hundreds of a large one.
  Want (*expected)(const Input&, std::int64_t index, const Problem&);
  // The bits of in[index]; without it `in` is noise. `problem.in` is where it will be.
  std::uint32_t (*word)(std::int64_t index, const Problem&) = nullptr;
  bool accuracy = false;  // the largest error in ulp is a result: max_ulp
};

// Of this program, by file. Called before main; stores and does nothing else.
bool register_experiment(const Experiment&);

}  // namespace softmax::studies

// SOFTMAX_STUDY("operation", .variants = {...}, ...): an experiment on the machine that the file is compiled for.
#define SOFTMAX_STUDY(operation, ...) SOFTMAX_STUDY_AT(__LINE__, operation, __VA_ARGS__)
#define SOFTMAX_STUDY_AT(line, ...) SOFTMAX_STUDY_ON(line, __VA_ARGS__)
#define SOFTMAX_STUDY_ON(line, name, ...)                                      \
  static const ::softmax::studies::Experiment softmax_study_##line = {         \
      .operation = name, .machine = &::softmax::device::machine, __VA_ARGS__}; \
  [[maybe_unused]] static const bool softmax_study_registered_##line =         \
      ::softmax::studies::register_experiment(softmax_study_##line);
