#include "kernels/device/simt/source.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

namespace softmax::device::simt {
namespace {

// This program and its libraries, as libdw sees them; never closed. Null where there is no /proc.
Dwfl* program() {
  static const Dwfl_Callbacks callbacks = {
      .find_elf = dwfl_linux_proc_find_elf,
      // Nothing is looked for elsewhere, let alone on the network: a kernel's lines are in the program or nowhere.
      .find_debuginfo = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                           char**) { return -1; },
      .section_address = nullptr,
      .debuginfo_path = nullptr};
  static Dwfl* const opened = [] {
    Dwfl* dwfl = dwfl_begin(&callbacks);
    const bool good =
        dwfl && dwfl_linux_proc_report(dwfl, getpid()) == 0 && dwfl_report_end(dwfl, nullptr, nullptr) == 0;
    return good ? dwfl : nullptr;
  }();
  return opened;
}

bool is_word(const std::string& file) { return file.find("/device/simt/") != std::string::npos; }

int number(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? int(value) : -1;
}

}  // namespace

SourceLine line_of(std::uintptr_t pc) {
  static std::mutex one_at_a_time;  // of libdw
  const std::lock_guard lock(one_at_a_time);
  --pc;  // into the call itself
  Dwfl_Module* const module = program() ? dwfl_addrmodule(program(), pc) : nullptr;
  Dwfl_Line* const row = module ? dwfl_module_getsrc(module, pc) : nullptr;
  if (!row) return {};
  SourceLine found;
  if (const char* file = dwfl_lineinfo(row, nullptr, &found.line, nullptr, nullptr, nullptr)) found.file = file;

  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_module_addrdie(module, pc, &bias);
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  // Of an inlined call, the scopes are those of its definition; the chain of callers is that of its innermost one.
  Dwarf_Die *innermost = nullptr, *scopes = nullptr;
  if (!unit || dwarf_getscopes(unit, pc - bias, &innermost) <= 0) return found;
  const int depth = dwarf_getscopes_die(innermost, &scopes);
  std::free(innermost);
  if (depth <= 0 || dwarf_getsrcfiles(unit, &files, &count) != 0) return found;
  for (int i = 0; i < depth && is_word(found.file); ++i) {
    if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine) continue;
    const int file = number(&scopes[i], DW_AT_call_file), line = number(&scopes[i], DW_AT_call_line);
    const char* const name = file >= 0 ? dwarf_filesrc(files, std::size_t(file), nullptr, nullptr) : nullptr;
    if (!name || line < 0) break;
    found = {name, line};
  }
  std::free(scopes);
  return found;
}

}  // namespace softmax::device::simt
