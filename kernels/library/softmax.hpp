#pragma once
// The library: one call that starts the fastest softmax for a problem.
//
//   softmax::Problem p{.rows = n, .cols = c, .in_stride = c, .out_stride = c, .in = in, .out = out, .stream = stream};
//   p.workspace = ...;            // softmax::workspace_bytes(p) of them, often 0; zeroed once
//   softmax::forward(p);
//
// A call allocates no memory of the device and synchronises nothing, so a stream may be capturing it into a graph. Threads may
// call at the same time, each with a workspace of its own. On a GPU all of it is of the thread's current one.

#include <cstdint>
#include <stdexcept>
#include <string>

#include "problem.hpp"

namespace softmax {

enum class Device {
  best,  // the GPU if the library was built with CUDA, else the CPU device
  gpu,
  cpu,  // the CPU device, which checks every access and is slow
};

// The problem is wrong, or nothing here takes it: what() says which value, and what would be possible. Nothing was started.
struct InvalidProblem : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
// There is no such device, or it refused, or an earlier launch broke it; or SOFTMAX_TABLE names no table.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Starts out = softmax(in / temperature) on p.stream. No rows or no columns are a success that starts nothing. The library
// chooses block and plan itself: leave these fields alone. Throws InvalidProblem or DeviceError, as all functions of a
// Problem here.
void forward(const Problem& p, Device = Device::best);

// Bytes of Problem::workspace, which begins at a multiple of 16; independent of all pointers. Enough for such a problem of
// fewer rows too, so that one workspace serves every batch up to the largest.
std::int64_t workspace_bytes(const Problem& p, Device = Device::best);

// What forward(p) starts: "V10 512x8+4s c2"; empty if it starts nothing. problem.hpp says what a plan is.
std::string picked(const Problem& p, Device = Device::best);

// Obeys the table of this file in place of the built-in one, which was measured on an H200. Not while another thread calls:
// what the new table picks may need more workspace. Throws std::runtime_error, which names the file and the line; then the
// old one stays in force.
void load_table(const std::string& path);

}  // namespace softmax
