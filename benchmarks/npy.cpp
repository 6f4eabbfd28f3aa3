#include "benchmarks/npy.hpp"

#include <bit>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>

namespace softmax::bench {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of a file are taken as they are");

// The pattern of one key of the header, a Python dict literal, and its value. `group` is a regular expression with one group.
std::regex pair(const std::string& key, const std::string& group) {
  return std::regex("['\"]" + key + "['\"]\\s*:\\s*" + group);
}
std::string value(const std::string& header, const char* key, const std::regex& pattern) {
  std::smatch found;
  return std::regex_search(header, found, pattern)
             ? found[1].str()
             : throw std::runtime_error(std::string("header without a valid ") + key);
}

std::int64_t extent(const std::string& digits) {
  std::int64_t n = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), n).ec != std::errc{})
    throw std::runtime_error("dimension " + digits + " does not fit 64 bits");
  return n;
}

Matrix read(std::ifstream& file, std::uint64_t size) {
  unsigned char head[12] = {};
  file.read(reinterpret_cast<char*>(head), sizeof head);
  if (size < 10 || std::string(head, head + 6) != "\x93NUMPY")
    throw std::runtime_error("not a .npy file (no \\x93NUMPY)");
  const int major = head[6], minor = head[7];
  if ((major != 1 && major != 2) || minor != 0)
    throw std::runtime_error("format " + std::to_string(major) + "." + std::to_string(minor) +
                             "; 1.0 and 2.0 are read");
  const std::uint64_t start = major == 1 ? 10 : 12;
  std::uint64_t length = head[8] | head[9] << 8;
  if (major == 2) length |= std::uint64_t(head[10]) << 16 | std::uint64_t(head[11]) << 24;
  if (start + length > size)
    throw std::runtime_error("truncated header: " + std::to_string(start + length) + " bytes announced, the file has " +
                             std::to_string(size));
  // A 2-D header takes about 70 bytes, numpy pads it to 128; std::regex recurses, so its input stays short.
  if (length > 4096) throw std::runtime_error("header of " + std::to_string(length) + " bytes; at most 4096 are read");
  std::string header(length, ' ');
  file.clear();
  file.seekg(std::streamoff(start));
  file.read(header.data(), std::streamsize(length));

  static const std::regex kType = pair("descr", "['\"]([^'\"]*)['\"]"), kOrder = pair("fortran_order", "(True|False)"),
                          kShape = pair("shape", "\\(([^)]*)\\)"), kTwo("\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,?\\s*");
  const std::string type = value(header, "descr", kType);
  if (type != "<f4") throw std::runtime_error("dtype '" + type + "'; only '<f4' (little-endian float32) is read");
  if (value(header, "fortran_order", kOrder) == "True")
    throw std::runtime_error("Fortran order; only C order is read (save numpy.ascontiguousarray(x))");
  const std::string shape = value(header, "shape", kShape);
  std::smatch dims;
  if (!std::regex_match(shape, dims, kTwo))
    throw std::runtime_error("shape (" + shape + "); only two dimensions (rows, columns) are read");

  Matrix m{extent(dims[1]), extent(dims[2]), {}};
  if (m.rows == 0 || m.cols == 0) throw std::runtime_error("shape (" + shape + ") holds no element");
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(m.rows, m.cols, &bytes) || __builtin_mul_overflow(bytes, std::int64_t{4}, &bytes))
    throw std::runtime_error("shape (" + shape + ") is more bytes than 64 bits can count");
  const std::uint64_t there = size - start - length;
  if (there != std::uint64_t(bytes))
    throw std::runtime_error("shape (" + shape + ") needs " + std::to_string(bytes) + " bytes of data, the file has " +
                             std::to_string(there));
  m.data.resize(std::size_t(m.rows * m.cols));
  if (!file.read(reinterpret_cast<char*>(m.data.data()), bytes)) throw std::runtime_error("reading the data failed");
  return m;
}

}  // namespace

Matrix read_npy(const std::string& path) {
  try {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (error) throw std::runtime_error(error.message());
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot be opened for reading");
    return read(file, size);
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(path + ": " + e.what());
  }
}

}  // namespace softmax::bench
