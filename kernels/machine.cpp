#include "kernels/machine.hpp"

#include <algorithm>
#include <utility>

#include "kernels/kernel.hpp"

namespace softmax {

std::string to_string(const Schedule& s) {
  switch (s.order) {
    case Schedule::Order::forward: return "forward";
    case Schedule::Order::reverse: return "reverse";
    case Schedule::Order::seeded: return "seed " + std::to_string(s.seed);
  }
  return "?";
}

std::span<const CounterName> counter_names() {
  using C = Counters;
  static constexpr CounterName kNames[] = {
      {"l1tex__t_requests_pipe_lsu_mem_global_op_ld", &C::global_load_requests, "global loads of whole warps"},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld", &C::global_load_sectors, "32-byte sectors that they touch"},
      {"smsp__sass_data_bytes_mem_global_op_ld", &C::global_load_bytes,
       "bytes that the warps ask for, those that lanes share once"},
      {"redundant_load_bytes", &C::redundant_load_bytes, "of those, bytes that the same block had loaded before"},
      {"l1tex__t_requests_pipe_lsu_mem_global_op_st", &C::global_store_requests, "global stores of whole warps"},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_st", &C::global_store_sectors, "32-byte sectors that they touch"},
      {"smsp__sass_data_bytes_mem_global_op_st", &C::global_store_bytes, "bytes that the warps write"},
      {"smsp__inst_executed_op_shared_ld", &C::shared_load_requests, "shared loads of whole warps"},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld", &C::shared_load_wavefronts, "passes that they take"},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld", &C::shared_load_conflicts,
       "of those, passes that bank conflicts cost"},
      {"smsp__inst_executed_op_shared_st", &C::shared_store_requests, "shared stores of whole warps"},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st", &C::shared_store_wavefronts, "passes that they take"},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st", &C::shared_store_conflicts,
       "of those, passes that bank conflicts cost"},
      {"atomics", &C::atomics, "atomic operations of whole warps"},
      {"barriers", &C::barriers, "barriers that a whole block passed"},
      {"shuffles", &C::shuffles, "shuffles of whole warps, 4 bytes each"},
      {"votes", &C::votes, "votes of whole warps"},
      {"partial_requests", &C::partial_requests, "loads, stores and atomics with lanes that do not take part"},
  };
  return kNames;
}

Counters& Counters::operator+=(const Counters& other) {
  for (const CounterName& c : counter_names()) this->*c.value += other.*c.value;
  return *this;
}

std::vector<Machine*> machines() {
  std::vector<Machine*> all;
  for (const Kernel* kernel : kernels())
    if (std::find(all.begin(), all.end(), &kernel->machine()) == all.end()) all.push_back(&kernel->machine());
  std::stable_sort(all.begin(), all.end(), [](auto* a, auto* b) { return a->simulated() < b->simulated(); });
  return all;
}

namespace {
constexpr std::size_t kBand = 64 << 10;
}

std::vector<std::pair<std::string_view, double>> Machine::hardware_counters(const std::function<void()>&) {
  throw std::runtime_error(name() + " has no hardware counters");
}

Buffer::Buffer(Machine& machine, std::size_t bytes, bool sparse)
    : machine_(&machine), bytes_(bytes), band_(kBand), sparse_(sparse) {
  base_ = machine.allocate(bytes + 2 * band_, sparse);
  data_ = static_cast<char*>(base_) + band_;
  machine.fill(base_, kPoison, band_);
  machine.fill(static_cast<char*>(data_) + bytes_, kPoison, band_);
  if (!sparse) poison();
}

Buffer::~Buffer() {
  if (base_) machine_->release(base_, bytes_ + 2 * band_, sparse_);
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(machine_, other.machine_);
  std::swap(bytes_, other.bytes_);
  std::swap(band_, other.band_);
  std::swap(sparse_, other.sparse_);
  std::swap(base_, other.base_);
  std::swap(data_, other.data_);
  return *this;
}

void Buffer::poison() { machine_->fill(data_, kPoison, bytes_); }

void Buffer::upload(const void* from, std::size_t bytes, std::size_t offset) {
  machine_->upload(static_cast<char*>(data_) + offset, from, bytes);
}

void Buffer::download(void* to, std::size_t bytes, std::size_t offset) const {
  machine_->download(to, static_cast<const char*>(data_) + offset, bytes);
}

std::string Buffer::damage() const {
  std::vector<unsigned char> band(band_);
  for (bool after : {false, true}) {
    machine_->download(band.data(), after ? static_cast<char*>(data_) + bytes_ : static_cast<char*>(base_), band_);
    const auto hit = std::find_if(band.begin(), band.end(), [](unsigned char b) { return b != kPoison; });
    if (hit == band.end()) continue;
    const std::size_t at = std::size_t(hit - band.begin());
    return after ? "byte " + std::to_string(at) + " past the end was written"
                 : "byte " + std::to_string(band_ - at) + " before the start was written";
  }
  return {};
}

}  // namespace softmax
