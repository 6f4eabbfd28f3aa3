#pragma once
// What a softmax kernel promises its users, whatever machine runs it. No CUDA word in here.

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "kernels/library/problem.hpp"

namespace softmax {

class Machine;

// How a kernel finds the maximum and the sum: the number of passes and what an addition order costs.
enum class Algorithm { safe, online };
enum class Summation {
  unknown,            // any order: the bound assumes the worst
  sequential,         // one thread adds the row from left to right
  sequential_double,  // the same in double
  warp,               // 32 lanes stride over the row, then a tree
  block_tree,         // all threads of the block stride over the row, then one tree
  block_serial,       // the same with a tree in each warp, then one thread adds the warps' sums
  block_warp,         // the same with a tree in each warp, then a tree over the warps' sums
};

// Whose exp and which division a kernel uses: they decide the constants of its error bound. On a GPU the built code is held to
// them (properties/code_test.cpp).
enum class Exp {
  expf,         // expf(x - max)
  fast,         // __expf(x - max)
  shifted,      // ex2.approx.ftz((x - max) * scale), and finer where outputs have 32 bits: collective/online.hpp
  exp2_folded,  // exp2f(fma(x, log2(e), -M)), M = max * log2(e) rounded
};
enum class Divide {
  ieee,        // e / sum
  reciprocal,  // e * (1 / sum)
  fast,        // __fdividef(e, sum)
};

// Algorithmic traffic with device memory, in bytes: what the kernel asks for, not what caches let through.
struct Traffic {
  std::int64_t read = 0, written = 0;
};

// A short list as a literal: kernel files run no library code (device/simt/words.hpp says why).
template <class T>
class List {
 public:
  consteval List() {}  // of {}: without it nvcc 13.0 makes one element of nothing
  consteval List(std::initializer_list<T> values) {
    for (const T& value : values) values_[count_++] = value;
  }
  constexpr const T* begin() const { return values_; }
  constexpr const T* end() const { return values_ + count_; }
  constexpr int size() const { return count_; }
  constexpr const T& operator[](int i) const { return values_[i]; }

 private:
  T values_[32] = {};
  int count_ = 0;
};

// What the fast kernels take.
inline constexpr List<Types> kTypes = {{DataType::fp32, DataType::fp32},
                                       {DataType::fp16, DataType::fp16},
                                       {DataType::bf16, DataType::bf16},
                                       {DataType::fp16, DataType::fp32},
                                       {DataType::bf16, DataType::fp32}};

// What the order of a kernel's additions costs: how many an element passes through at most, and how many partial sums are
// rescaled on its way. Whether what is added up is what is output, bit for bit, but for the division; not if any is rescaled.
struct Rounding {
  std::int64_t additions = 0, merges = 0;
  bool one_exp = merges == 0;
};

class Kernel;
// Who does the work, and how.
struct Choice {
  const Kernel* kernel = nullptr;
  Plan plan = {};  // all 0 if it has none
};
std::string to_string(const Choice&);  // "V10 512x8+4s c2"

// Everything about a kernel that has a default. SOFTMAX_KERNEL takes them by name: `.blocks = {32}`.
struct Traits {
  List<int> blocks = {32, 64, 128, 256, 512, 1024};  // block sizes that it takes; {0}: the kernel chooses for itself
  Algorithm algorithm = Algorithm::online;
  Summation summation = Summation::unknown;
  Exp exp = Exp::expf;
  Divide divide = Divide::ieee;
  int reads = 1, writes = 1;  // times the kernel goes over the matrix
  int alignment = 4;          // bytes: input and output must begin at a multiple, and of an element in any case
  List<Types> types = {Types{}};
  bool in_place = false;         // output may be input
  bool temperature = false;      // it divides by one
  bool keeps_workspace = false;  // from launch to launch
  bool cuda_only = false;
  std::string (*supports)(const Problem&) = nullptr;    // empty: yes; else the reason
  std::int64_t (*workspace)(const Problem&) = nullptr;  // bytes
  Rounding (*rounding)(const Problem&) = nullptr;       // in place of what `summation` says
  List<Plan> plans = {};                                // whose threads and vectors it has; none: it has no plans
  Plan (*plan)(const Problem&) = nullptr;               // what it does with this problem, Problem::plan respected
  Choice (*choice)(const Problem&) = nullptr;           // of Auto, which leaves the work to another
};

class Kernel {
 public:
  using Launch = void (*)(const Problem&);
  Kernel(int version, std::string_view name, std::string_view idea, std::string_view file, Machine& (*machine)(),
         Launch launch, const Traits& traits);

  int version() const { return version_; }
  // "V6"; the name where there is no version: another's kernel that ours are measured against.
  std::string label() const { return version_ > 0 ? "V" + std::to_string(version_) : std::string(name_); }
  std::string_view name() const { return name_; }
  std::string_view idea() const { return idea_; }
  std::string_view file() const { return file_; }  // without its folder
  Machine& machine() const { return machine_(); }
  const Traits& traits() const { return traits_; }

  // Empty if the kernel takes this problem, else the reason it does not, naming what was asked and what is possible.
  std::string unsupported(const Problem&) const;
  // Starts the kernel on problem.stream, in slices of at most rows_per_launch rows: the 2^31 blocks of a grid's x never
  // bind a kernel file. Throws std::invalid_argument if unsupported, if a pointer is null or if input and
  // output overlap; std::runtime_error if the machine refuses or sees a rule broken. Pointers are the machine's own.
  static constexpr std::int64_t kRowsPerLaunch = std::int64_t{1} << 30;
  void launch(const Problem&, std::int64_t rows_per_launch = kRowsPerLaunch) const;
  void start(const Problem& p) const { launch_(p); }  // of a problem that launch() would take, without asking
  Traffic traffic(const Problem&) const;
  Plan plan(const Problem&) const;      // all 0 if it has none
  Choice choice(const Problem&) const;  // this kernel and its plan, or whom it leaves it to; of a problem it takes
  std::int64_t workspace(const Problem&) const;

 private:
  int version_;
  std::string_view name_, idea_, file_;
  Machine& (*machine_)();
  Launch launch_;
  Traits traits_;
};
std::ostream& operator<<(std::ostream&, const Kernel&);

// All kernels of this program, by version, then machine. A second kernel of one version on one machine stops the
// program.
std::span<const Kernel* const> kernels();
// Called by SOFTMAX_KERNEL before main; stores and does nothing else.
bool register_kernel(const Kernel&);

}  // namespace softmax
