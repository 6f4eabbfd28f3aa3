#pragma once
// Studies as benchmarks: "reduce/shuffle/fp32/ieee/hot/chains:1/block:32".

#include <string>
#include <vector>

#include "benchmarks/cases.hpp"
#include "benchmarks/studies/study.hpp"

namespace softmax::studies {

const std::vector<const Experiment*>& experiments();

// One row of an experiment.
struct Row {
  const Experiment* experiment;
  const Variant* variant;
  Problem problem;  // without memory
};
std::vector<Row> rows(const Experiment&);

// The memory that a row works on holds its input, and nothing in the output.
void prepare(bench::Workspace&, const Row&);
Problem problem(const bench::Workspace&, const Row&, int set = 0);
// Launches on every set. What a checking machine finds is thrown.
void launch(bench::Workspace&, const Row&);
// Throws "INCORRECT: ..." unless set 0 of the output is as expected; returns the largest error in ulp.
double check(const bench::Workspace&, const Row&);

// Adds a benchmark for each row of the session's machine.
void register_studies(bench::Session&, bench::Registered&, const std::vector<const Experiment*>& = experiments());

}  // namespace softmax::studies
