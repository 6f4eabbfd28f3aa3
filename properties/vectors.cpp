#include "properties/vectors.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace softmax::properties {
namespace {

using Json = nlohmann::json;

double number(const Json& value) {
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return value.get<double>();
}

template <typename T>
std::vector<T> numbers(const Json& list) {
  if (!list.is_array()) throw std::runtime_error("input and expected must be lists");
  std::vector<T> result;
  for (const Json& value : list) {
    result.push_back(T(number(value)));
    if (std::isinf(result.back()) && value.is_number()) {
      throw std::runtime_error("element " + std::to_string(result.size() - 1) + " is too large: " + value.dump());
    }
  }
  return result;
}

void check(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

Vector parse(const Json& json) {
  Vector v;
  json.at("op").get_to(v.op);
  json.at("dtype").get_to(v.dtype);
  json.at("rows").get_to(v.rows);
  json.at("cols").get_to(v.cols);
  json.at("tolerance_abs").get_to(v.tolerance);
  v.input = numbers<float>(json.at("input"));
  v.expected = numbers<double>(json.at("expected"));
  check(v.op == "softmax" || v.op == "log_softmax", "op must be softmax or log_softmax, not " + v.op);
  check(v.dtype == "fp32" || v.dtype == "fp16" || v.dtype == "bf16",
        "dtype must be fp32, fp16 or bf16, not " + v.dtype);
  check(v.rows > 0 && v.cols > 0, "rows and cols must be 1 or more");
  check(v.tolerance >= 0 && std::isfinite(v.tolerance), "tolerance_abs must be 0 or more");
  // Divided, not multiplied: a product of two bad numbers could overflow to a good one.
  const auto fits = [&](std::size_t size) {
    return size % std::size_t(v.rows) == 0 && size / std::size_t(v.rows) == std::size_t(v.cols);
  };
  check(fits(v.input.size()) && fits(v.expected.size()),
        "rows * cols must be the length of input (" + std::to_string(v.input.size()) + ") and expected (" +
            std::to_string(v.expected.size()) + "), not " + std::to_string(v.rows) + " * " + std::to_string(v.cols));
  return v;
}

}  // namespace

std::vector<Vector> load_vectors(const std::string& path) {
  std::string where = "vectors file " + path;
  try {
    std::ifstream file(path);
    check(file.is_open(), "cannot be opened");
    const Json list = Json::parse(file);
    check(list.is_array() && !list.empty(), "must be a list of at least one vector");
    std::vector<Vector> vectors;
    for (const Json& json : list) {
      where = "vectors file " + path + ", vector " + std::to_string(vectors.size());
      const std::string name = json.at("name").get<std::string>();
      where += " (" + name + ")";
      vectors.push_back(parse(json));
      vectors.back().name = name;
    }
    return vectors;
  } catch (const std::exception& error) {  // ours and nlohmann's alike
    throw std::runtime_error(where + ": " + error.what());
  }
}

}  // namespace softmax::properties
