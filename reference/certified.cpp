#include "reference/certified.hpp"

#include <sstream>
#include <string>
#include <vector>

namespace softmax::reference {

extern const char* const kCertified;  // certified.csv; made by CMake

std::optional<Certificate> certified(std::string_view device, std::string_view math, std::string_view exp) {
  std::istringstream lines(kCertified);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream rest(line);
    for (std::string field; std::getline(rest, field, ',');) fields.push_back(field);
    const bool is_it = fields.size() >= 15 && fields[0] == device && fields[1] == math && fields[3] == exp;
    const double below = math == "ieee" && exp == "expf" ? 2.5 : 0x1p23;  // as kEtaGradual and kEtaFlushed have it
    if (!is_it || fields[4] != "1" || std::stod(fields[10]) > below || std::stod(fields[13]) > 1 ||
        std::stod(fields[14]) != 1)
      continue;
    return Certificate{{std::stod(fields[7]) * (1 + kPrinted), std::stod(fields[6])}, fields[11] == "0"};
  }
  return {};
}

}  // namespace softmax::reference
