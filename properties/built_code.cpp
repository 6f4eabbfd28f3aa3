#include "properties/built_code.hpp"

#include <cctype>
#include <map>

#if SOFTMAX_ZSTD
#include <zstd.h>
#endif

namespace softmax::properties {
namespace {

constexpr const char *kLog2E = "0f3FB8AA3B", *kLog2ELow = "0f32A57060", *kOne = "0f3F800000", *kMinusOne = "0fBF800000",
                     *kMinusLn2 = "0fBF317218";

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
bool starts(std::string_view text, std::string_view with) { return text.starts_with(with); }

Instruction parse(std::string_view statement) {
  Instruction made;
  std::string word;
  const auto flush = [&] {
    if (word.empty() || word[0] == '@') return word.clear();
    if (made.op.empty()) {
      made.op = word;
    } else {
      made.operands.push_back(word);
    }
    word.clear();
  };
  for (const char c : statement) {
    if (std::isspace(static_cast<unsigned char>(c)) || c == ',' || c == '{' || c == '}' || c == '|') {
      flush();
    } else {
      word += c;
    }
  }
  flush();
  return made;
}

// One function's registers, each traced back to where its value is made.
class Registers {
 public:
  explicit Registers(const Entry& entry) {
    for (const Instruction& i : entry.code) {
      const bool vector = starts(i.op, "ld.") && has(i.op, ".v"), none = starts(i.op, "st.");
      const std::size_t results = none ? 0 : vector && i.operands.size() > 1 ? i.operands.size() - 1 : 1;
      for (std::size_t r = 0; r < results && r < i.operands.size(); ++r) made_by_[i.operands[r]].push_back(&i);
    }
  }
  // What made it, copies left out; null of a constant, and where more than one instruction may have.
  const Instruction* origin(const std::string& name) const {
    const auto at = made_by_.find(source(name));
    return at != made_by_.end() && at->second.size() == 1 ? at->second[0] : nullptr;
  }
  bool is(const std::string& name, const char* constant) const { return source(name) == constant; }
  // May it be a product, in any way that led here?
  bool product(const std::string& name, int depth = 0) const {
    const auto at = made_by_.find(name);
    if (at == made_by_.end() || depth > 8) return false;
    for (const Instruction* i : at->second) {
      if (is_product(*i)) return true;
      if (starts(i->op, "mov.") || starts(i->op, "selp.") || starts(i->op, "neg."))
        for (std::size_t o = 1; o < i->operands.size(); ++o)
          if (product(i->operands[o], depth + 1)) return true;
    }
    return false;
  }

 private:
  // With .rn the rounding is asked for.
  static bool is_product(const Instruction& i) {
    return starts(i.op, "mul.") && has(i.op, ".f32") && !has(i.op, ".rn");
  }
  std::string source(std::string name) const {
    for (int copies = 0; copies < 8; ++copies) {
      const auto at = made_by_.find(name);
      if (at == made_by_.end() || at->second.size() != 1 || !starts(at->second[0]->op, "mov.") ||
          at->second[0]->operands.size() != 2)
        break;
      name = at->second[0]->operands[1];
    }
    return name;
  }
  std::map<std::string, std::vector<const Instruction*>> made_by_;
};

// Why it is no difference of two numbers that are rounded by themselves.
std::string no_difference(const Registers& registers, const std::string& name) {
  const Instruction* const made = registers.origin(name);
  if (!made) return "an exp whose argument is made in many ways";
  if (starts(made->op, "fma.")) return "an exp of a difference that is contracted: " + made->op;
  if (!starts(made->op, "sub.")) return "an exp of what " + made->op + " made";
  for (std::size_t o = 1; o < made->operands.size(); ++o)
    if (registers.product(made->operands[o])) return "an exp whose argument's product may be contracted";
  return {};
}

// The argument of an ex2, by the form that each exp gives it.
std::string not_exp(const Registers& registers, const std::string& argument, Exp stated, bool fast_math) {
  const Instruction* const made = registers.origin(argument);
  if (!made) return "an ex2 whose argument is made in many ways";
  const auto& from = made->operands;
  if (stated == Exp::exp2_folded)
    return starts(made->op, "fma.rn") && registers.is(from[2], kLog2E) ? "" : "an exp2 that is not folded";
  const bool product = starts(made->op, "mul.") && has(made->op, ".f32");
  const bool by_log2e = product && registers.is(from[2], kLog2E);
  if (stated == Exp::expf && !fast_math) {
    // x * log2(e) in two parts, so that next to nothing is lost.
    const Instruction* const high = starts(made->op, "fma.rn.f32") ? registers.origin(from[3]) : nullptr;
    const bool whole = high && registers.is(from[2], kLog2ELow) && starts(high->op, "fma.rn.f32") &&
                       registers.is(high->operands[2], kLog2E) && high->operands[1] == from[1];
    return whole ? no_difference(registers, from[1]) : "an ex2 that is not expf's: its argument is of " + made->op;
  }
  if (stated == Exp::shifted ? !product : !by_log2e)
    return "an ex2 whose argument is of " + made->op + ", not a product with " +
           (stated == Exp::shifted ? "a scale" : "log2(e)");
  // The compiler may have turned the factors around.
  if (no_difference(registers, from[2]).empty()) return {};
  return no_difference(registers, from[1]);
}

// An exp y that is given back what its power, difference times scale, lost: y + y * (over * -ln 2). Null if it is none.
const Instruction* given_back(const Registers& registers, const Instruction& last) {
  if (!starts(last.op, "fma.rn") || (last.operands[1] != last.operands[3] && last.operands[2] != last.operands[3]))
    return nullptr;
  const Instruction* const exp = registers.origin(last.operands[3]);
  return exp && starts(exp->op, "ex2.") ? exp : nullptr;
}
std::string not_fine(const Registers& registers, const Instruction& exp, const Instruction& last) {
  const auto by = [&](const Instruction* from, std::size_t operand, const char* op) {
    const Instruction* const made = from ? registers.origin(from->operands[operand]) : nullptr;
    return made && starts(made->op, op) ? made : nullptr;
  };
  const std::size_t lost = last.operands[1] == last.operands[3] ? 2 : 1;
  const Instruction *const product = by(&last, lost, "mul."), *const most = by(product, 1, "max."),
                           *const with_rest = by(most, 1, "fma.rn"), *const over = by(with_rest, 3, "fma.rn"),
                           *const minus = by(over, 1, "neg."), *const power = registers.origin(exp.operands[1]);
  if (!minus || !power || !registers.is(most->operands[2], kMinusOne) || !registers.is(product->operands[2], kMinusLn2))
    return "an exp is given back something else";
  const auto factor = [&](const std::string& name) { return name == power->operands[1] || name == power->operands[2]; };
  const bool whole = over->operands[3] == exp.operands[1] && with_rest->operands[1] == over->operands[1] &&
                     factor(minus->operands[1]) && factor(over->operands[2]);
  return whole ? "" : "an exp is given back what another lost";
}

void read_entry(const Entry& entry, const Traits& traits, bool fast_math, BuiltCode& all) {
  const Registers registers(entry);
  const auto wrong = [&](const std::string& what) {
    if (all.wrong.empty()) all.wrong = entry.name + ": " + what;
  };
  ++all.entries;
  for (const Instruction& i : entry.code) {
    const bool f32 = has(i.op, ".f32"), arithmetic = starts(i.op, "add.") || starts(i.op, "sub.") ||
                                                     starts(i.op, "mul.") || starts(i.op, "fma.") ||
                                                     starts(i.op, "div.") || starts(i.op, "rcp.");
    all.doubles += starts(i.op, "add.") && has(i.op, ".f64");
    if (const Instruction* const exp = given_back(registers, i)) {
      ++all.fine;
      if (const std::string why = not_fine(registers, *exp, i); !why.empty()) wrong(why);
    }
    if (starts(i.op, "ex2.")) {
      ++all.exps;
      if (!has(i.op, ".ftz") && (fast_math || traits.exp == Exp::shifted)) wrong(i.op + " does not flush");
      if (const std::string why = not_exp(registers, i.operands[1], traits.exp, fast_math); !why.empty()) wrong(why);
    } else if (f32 && arithmetic && has(i.op, ".ftz") != fast_math) {
      wrong(i.op + (fast_math ? " does not flush, though all is built for fast math" : ": built for fast math"));
    } else if (starts(i.op, "cvt.") && has(i.op, "16") && i.op.ends_with(".f32") && !has(i.op, ".rn")) {
      wrong(i.op + " does not round to nearest");
    }
    if (!f32 || !(starts(i.op, "div.") || starts(i.op, "rcp."))) continue;
    // The scale of a temperature is divided as the flags say.
    const bool scale = starts(i.op, "div.") && registers.is(i.operands[1], kLog2E);
    const bool reciprocal = starts(i.op, "rcp.") || registers.is(i.operands[1], kOne);
    const bool approximate = !has(i.op, ".rn"), by_name = traits.divide == Divide::fast && !scale;
    if (approximate != (fast_math || by_name)) wrong(i.op + (approximate ? " is" : " is not") + " approximate");
    if (scale) continue;
    ++(reciprocal ? all.reciprocals : all.quotients);
    if (reciprocal != (traits.divide == Divide::reciprocal)) wrong(i.op + ": not the division that is stated");
  }
}

// nvcc packs cubins that are large, and PTX.
std::vector<std::string> unpacked([[maybe_unused]] const std::string& bytes) {
  std::vector<std::string> all;
#if SOFTMAX_ZSTD
  constexpr std::string_view kMagic = "\x28\xb5\x2f\xfd", kElf =
                                                              "\x7f"
                                                              "ELF";
  constexpr unsigned long long kMost = 1 << 28;
  for (std::size_t at = bytes.find(kMagic); at != bytes.npos; at = bytes.find(kMagic, at + 1)) {
    const char* const from = bytes.data() + at;
    const std::size_t size = ZSTD_findFrameCompressedSize(from, bytes.size() - at);
    const unsigned long long whole = ZSTD_getFrameContentSize(from, bytes.size() - at);
    if (ZSTD_isError(size) || whole > kMost) continue;  // what looked like a frame is none
    std::string text(whole, 0);
    if (ZSTD_decompress(text.data(), text.size(), from, size) == whole && text.starts_with(kElf)) all.push_back(text);
  }
#endif
  return all;
}

void find_entries(const std::string& bytes, std::vector<Entry>& all) {
  constexpr std::string_view kEntry = ".entry ";
  for (std::size_t at = bytes.find(kEntry); at != bytes.npos; at = bytes.find(kEntry, at)) {
    at += kEntry.size();
    Entry entry;
    while (at < bytes.size() &&
           (std::isalnum(static_cast<unsigned char>(bytes[at])) || bytes[at] == '_' || bytes[at] == '$'))
      entry.name += bytes[at++];
    // Its body is in braces, which inline assembly nests. Lines end in zeros where the text lies in a cubin.
    int depth = 0;
    std::string statement;
    for (bool text = !entry.name.empty(); text && at < bytes.size(); ++at) {
      const char c = bytes[at];
      const unsigned char code = static_cast<unsigned char>(c);
      if (code >= 127 || (code < 32 && code != 0 && !std::isspace(code))) break;  // no text after all
      if (c == '{' && depth++ == 0) statement.clear();
      if (c == ';' && depth > 0) {
        if (Instruction i = parse(statement); !i.op.empty() && !i.operands.empty() && i.op[0] != '.')
          entry.code.push_back(std::move(i));
      }
      statement = c == ';' || c == ':' ? "" : statement + (c == 0 ? ' ' : c);
      if (c == '}' && --depth == 0) break;
    }
    if (!entry.code.empty()) all.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<Entry> entries(const std::string& bytes) {
  std::vector<Entry> all;
  find_entries(bytes, all);
  for (const std::string& cubin : unpacked(bytes)) find_entries(cubin, all);
  return all;
}

BuiltCode read_code(const std::vector<Entry>& of_kernel, const Traits& traits, bool fast_math) {
  BuiltCode all;
  for (const Entry& entry : of_kernel) read_entry(entry, traits, fast_math, all);
  const auto lacks = [&](const char* what) {
    if (all.wrong.empty()) all.wrong = std::string("no ") + what;
  };
  if (all.exps == 0) lacks("exp");
  if (traits.divide == Divide::reciprocal ? all.reciprocals == 0 : all.quotients == 0) lacks("division");
  if ((traits.summation == Summation::sequential_double) != (all.doubles > 0)) lacks("sum in the type that is stated");
  return all;
}

}  // namespace softmax::properties
