#include "benchmarks/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace softmax::bench {

std::string short_name(const std::string& name) {
  std::istringstream in(name);
  std::string part, text, last, mode;
  for (int at = 0; std::getline(in, part, '/'); ++at) {
    const std::size_t colon = part.find(':');
    if (colon != std::string::npos) {
      const std::string key = part.substr(0, colon), value = part.substr(colon + 1);
      text += key == "C" && last == "N" ? " x " + value : key == "N" ? " " + value : " " + key + " " + value;
      last = key;
    } else if (at == 1 || (at == 0 && part != "softmax")) {  // operation, version
      text += (text.empty() ? "" : " ") + part;
    } else if (at == 4 && part != "cold" && part != "sim") {
      text += " " + part;
    }
  }
  return text;
}

std::string progress_text(std::int64_t at, std::int64_t of, const std::string& name, std::optional<double> left) {
  std::string text = "[" + std::to_string(at) + "/" + std::to_string(of) + "] " + name;
  if (!left) return text;
  const double s = std::ceil(*left);
  const auto whole = [](double value) { return std::to_string(std::int64_t(std::ceil(value))); };
  return text + ", " +
         (s < 100    ? whole(s) + " s"
          : s < 6000 ? whole(s / 60) + " min"
                     : whole(s / 3600) + " h") +
         " left";
}

Progress::Progress(std::int64_t total, std::function<double()> now, std::ostream* terminal, int columns)
    : total_(total), now_(std::move(now)), terminal_(terminal), columns_(columns) {}

void Progress::begin(const std::string& name, std::int64_t iterations) {
  const auto [last, fresh] = iterations_.try_emplace(name, iterations);
  const bool again = !fresh && iterations > last->second && current_.name == name;
  last->second = iterations;
  if (again) {  // what ended was not enough for the library
    --done_;
  } else if (current_.ended) {
    ++known_;
    known_seconds_ += current_.seconds;
  }
  current_ = {name, now_(), again ? current_.seconds : 0};
  draw();
}

void Progress::end() {
  current_.seconds += now_() - current_.start;
  current_.ended = true;
  ++done_;
}

void Progress::tick() {
  if (visible_ && now_() - drawn_ >= 0.25) draw();
}

void Progress::draw() {
  if (!terminal_) return;
  drawn_ = now_();
  std::optional<double> left;
  if (known_ > 0) {
    const double each = known_seconds_ / known_;
    left = double(total_ - done_) * each - std::min(each, drawn_ - current_.start);
  }
  const std::string text = current_.name.empty()
                               ? "measuring the roofs"
                               : progress_text(std::min(done_ + 1, total_), total_, short_name(current_.name), left);
  // A line that wraps could not be taken back.
  *terminal_ << "\r" << text.substr(0, std::size_t(std::max(columns_ - 1, 0))) << "\x1b[K" << std::flush;
  visible_ = true;
}

void Progress::clear() {
  if (visible_) *terminal_ << "\r\x1b[K" << std::flush;
  visible_ = false;
}

int terminal_columns() {
  const char* const term = std::getenv("TERM");
  if (!isatty(STDERR_FILENO) || !term || !*term || std::string(term) == "dumb") return 0;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace softmax::bench
