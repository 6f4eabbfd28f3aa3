#pragma once
// How far a run is, and how long it will take: a line on the terminal that the next line of the table replaces.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>

namespace softmax::bench {

// "V6 8192 x 50257 block 64" of a benchmark's name; a mode is left out where it goes without saying.
std::string short_name(const std::string& name);
// "[12/48] V6 8192 x 50257 block 64, 14 s left"; without the last part if nobody knows.
std::string progress_text(std::int64_t at, std::int64_t of, const std::string& name, std::optional<double> left);

// Counts repetitions, each of which the library may enter several times, with a growing number of iterations.
class Progress {
 public:
  // `now` in seconds. `terminal` may be null: it only counts then.
  Progress(std::int64_t total, std::function<double()> now, std::ostream* terminal, int columns = 80);

  void start() { draw(); }  // what comes before the first of them
  void begin(const std::string& name, std::int64_t iterations);
  void tick();   // redraws the line, not too often
  void end();    // of what begin() said; not called for what was given up
  void clear();  // before anybody else writes
  std::int64_t done() const { return done_; }
  std::int64_t total() const { return total_; }

 private:
  void draw();

  std::int64_t total_, done_ = 0;
  std::function<double()> now_;
  std::ostream* terminal_;
  int columns_;
  int known_ = 0;  // repetitions that came to their end, and what they took: each of the others takes as long
  double known_seconds_ = 0;
  std::map<std::string, std::int64_t> iterations_;  // of the last entry, by name
  struct {
    std::string name;
    double start = 0, seconds = 0;  // seconds: of its entries that ended
    bool ended = false;
  } current_;
  double drawn_ = 0;
  bool visible_ = false;
};

// Columns of the terminal that standard error is; 0 if it is none, or cannot take a line back.
int terminal_columns();

}  // namespace softmax::bench
