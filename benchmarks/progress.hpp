#pragma once
// How far a run is, and how long it will take: a line on the terminal that the next line of the table replaces.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>

namespace softmax::bench {

// What measurements of some size take, from those that are done: a share that all have in common and one in proportion,
// by least squares. On a GPU the first is nearly all of it, on the CPU device nearly none.
class Estimate {
 public:
  void add(double size, double seconds);
  std::optional<double> seconds(double count, double size) const;  // of `count` more, of this size together

 private:
  double n_ = 0, size_ = 0, size2_ = 0, seconds_ = 0, product_ = 0;  // sums
};

// "V6 8192 x 50257 block 64" of a benchmark's name; a mode is left out where it goes without saying.
std::string short_name(const std::string& name);
// "[12/48] V6 8192 x 50257 block 64, 14 s left"; without the last part if nobody knows.
std::string progress_text(std::int64_t at, std::int64_t of, const std::string& name, std::optional<double> left);

// Counts repetitions, each of which the library may enter several times, with a growing number of iterations.
class Progress {
 public:
  // `total` repetitions of `size` together, in any unit; `now` in seconds. `terminal` may be null: it only counts then.
  Progress(std::int64_t total, double size, std::function<double()> now, std::ostream* terminal, int columns = 80);

  void begin(const std::string& name, double size, std::int64_t iterations);
  void tick();   // redraws the line, not too often
  void end();    // of what begin() said; not called for what was given up
  void clear();  // before anybody else writes
  std::int64_t done() const { return done_; }
  std::int64_t total() const { return total_; }

 private:
  void draw();

  std::int64_t total_, done_ = 0;
  double size_;  // of what is not done
  std::function<double()> now_;
  std::ostream* terminal_;
  int columns_;
  Estimate estimate_;
  std::map<std::string, std::int64_t> iterations_;  // of the last entry, by name
  struct {
    std::string name;
    double size = 0, start = 0, seconds = 0;  // seconds: of its entries that ended
    bool ended = false;
  } current_;
  double drawn_ = 0;
  bool visible_ = false;
};

// Columns of the terminal that standard error is; 0 if it is none, or cannot take a line back.
int terminal_columns();

}  // namespace softmax::bench
