#!/usr/bin/env python3
"""Makes a kernel file of anyone's CUDA file: translate.py FILE --cpu OUT --gpu OUT.

A file that registers itself (SOFTMAX_KERNEL) passes through. A plain one states in a comment how it is launched:

    // launch: my_softmax<<<N, 256>>>(out, in, N, C)
    // takes: C % 4 == 0                                  (optional: the shapes it is for)

For nvcc a launch function and the registration are appended. For g++ the words that are no C++ are replaced as well:
__shared__, <<<...>>>, CUDA's headers, and the body of main. It works on tokens, not on a syntax tree: where that is not
enough, it says so, with the line. Lines keep their numbers.

Prints what keeps the CPU device from running the file, one reason a line; then --cpu is not written. Exit status 2: the
file cannot be judged, and standard error says why.
"""

import argparse
import pathlib
import re
import sys

# Headers whose words the CPU device has, or that only hosts need.
KNOWN_HEADERS = r"(cuda_runtime(_api)?|cuda|cooperative_groups(/reduce)?|device_launch_parameters|math_constants|vector_types|device_functions|sm_\d+_intrinsics)(\.h)?"
FOREIGN_HEADERS = r"(cub|cute|cutlass|thrust|cuda|cooperative_groups|mma|cuda_\w+|cublas\w*|cudnn\w*|curand\w*|torch|ATen|c10|nv\w+)\b"
OBSTACLES = [
    (r"\b(asm|__asm__)\b", "inline PTX"),
    (r"\b(wmma|cute|cutlass|cub|thrust)\s*::", "{0}:: of a library of device code"),
    (r"\bcuda\s*::\s*\w+", "libcu++"),
    (r"\b(__half2?|half2?|__nv_bfloat16\d?|nv_bfloat16\d?)\b", "16-bit floats"),
    (r"\b(cudaMemcpyToSymbol|cudaLaunchKernelEx|cudaLaunchCooperativeKernel)\b", "{0}"),
    (r"\bcg\s*::\s*(coalesced_threads|memcpy_async|inclusive_scan|exclusive_scan|labeled_partition)\b", "cg::{0}"),
]
SPECIFIER = r"(?:static|inline|__inline__|__inline|__device__|__global__|__host__|__forceinline__|__noinline__|constexpr|extern\s+\".\")"


class Refusal(Exception):
    pass


def mask(text):
    """The text with comments and the insides of literals blanked: same length, same lines; and its comments."""
    pattern = re.compile(
        r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'', re.S)
    comments = []

    def blank(match):
        found = match.group()
        if found.startswith("/"):
            comments.append((match.start(), found))
            return re.sub(r"[^\n]", " ", found)
        return found[0] + re.sub(r"[^\n]", " ", found[1:-1]) + found[-1]

    # An include's name is no string, and may hold what looks like a comment.
    return pattern.sub(blank, text), comments


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def closing(code, at):
    """The place of the bracket that closes the one at `at`."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    stack = []
    for i in range(at, len(code)):
        if code[i] in pairs:
            stack.append(pairs[code[i]])
        elif stack and code[i] == stack[-1]:
            stack.pop()
            if not stack:
                return i
    raise Refusal(f"line {line_of(code, at)}: '{code[at]}' is never closed")


def split(code, angles=False):
    """Places of the commas that no bracket encloses."""
    depth, commas = 0, []
    for i, c in enumerate(code):
        if c in "([{" or (angles and c == "<"):
            depth += 1
        elif c in ")]}" or (angles and c == ">"):
            depth -= 1
        elif c == "," and depth == 0:
            commas.append(i)
    return commas


def pieces(text, code, angles=False):
    ends = split(code, angles) + [len(code)]
    return [text[a:b].strip() for a, b in zip([0] + [e + 1 for e in ends[:-1]], ends)]


class Edits:
    """Replacements in a text, applied at once; each keeps the number of lines."""

    def __init__(self, text):
        self.text, self.list = text, []

    def replace(self, start, end, by):
        self.list.append((start, end, by + "\n" * (self.text.count("\n", start, end) - by.count("\n"))))

    def apply(self):
        out, at = [], 0
        for start, end, by in sorted(self.list):
            if start < at:
                raise Refusal(f"line {line_of(self.text, start)}: cannot be translated; write it on lines of its own")
            out += [self.text[at:start], by]
            at = end
        return "".join(out + [self.text[at:]])


def inside_function(code, at):
    """Is there an open brace before `at` that does not belong to a namespace, an extern "C" or a class?"""
    stack = []
    for match in re.finditer(r"[{}]", code[:at]):
        if match.group() == "}":
            if stack:
                stack.pop()
        else:
            head = code[:match.start()].rstrip()
            stack.append(re.search(r"(\bnamespace\b[\w\s:]*|\bextern\s+\"\s*\")$", head) is None)
    return any(stack)


def shared(text, code):
    """`__shared__ T a[8], b;` becomes SHARED(a, T[8]); SHARED(b, T)."""
    edits = Edits(text)
    for match in re.finditer(r"((?:\b(?:extern|static|volatile)\s+)*)\b__shared__\b([^;]*);", code):
        number = line_of(text, match.start())
        body = text[match.start(2):match.end(2)]
        masked = match.group(2)
        alignment = re.search(r"(?:__align__|alignas)\s*\(", masked)
        aligned = ""
        if alignment:
            end = closing(masked, alignment.end() - 1)
            aligned = body[alignment.end():end].strip()
            body = body[:alignment.start()] + body[end + 1:]
            masked = masked[:alignment.start()] + masked[end + 1:]
        declarators = pieces(body, masked, angles="[" not in masked.split(",")[0])
        first = re.fullmatch(r"(.*?[\s>*&])(\w+)((?:\s*\[[^\]]*\])*)", declarators[0], re.S)
        if not first or "=" in masked:
            raise Refusal(f"line {number}: this form of __shared__ is not understood: {' '.join(body.split())}")
        type_name = " ".join(re.sub(r"\b(volatile|static|extern)\b", "", first.group(1)).split())
        # A volatile variable stays volatile: each access then happens.
        if re.search(r"\bvolatile\b", match.group(1) + masked):
            type_name = "volatile " + type_name
        if "extern" in match.group(1) or re.match(r"\s*extern\b", masked):
            name = first.group(2)
            if inside_function(code, match.start()):
                by = f"SHARED_DYNAMIC({name}, {type_name});"
            else:  # at file scope it is a name for the memory of whichever block asks
                head = text.rfind("\n", 0, match.start()) + 1
                if text[head:match.start()].strip():
                    raise Refusal(f"line {number}: give the extern __shared__ array a line of its own")
                by = f"#define {name} (static_cast<{type_name}*>(::softmax::device::simt::dynamic_shared()))"
        else:
            if not inside_function(code, match.start()):
                raise Refusal(f"line {number}: a __shared__ variable outside of a kernel; move it inside")
            parts = []
            for i, declarator in enumerate(declarators):
                found = first.group(2, 3) if i == 0 else re.fullmatch(r"(\w+)((?:\s*\[[^\]]*\])*)", declarator, re.S).groups()
                name, dims = found[0], " ".join(found[1].split())
                parts.append(f"SHARED_ALIGNED({aligned}, {name}, {type_name}, {dims})" if aligned else
                             f"SHARED({name}, {type_name}{dims})")
            by = "; ".join(parts) + ";"
        edits.replace(match.start(), match.end(), by)
    return edits.apply()


def launches(text, code):
    """`f<<<grid, block>>>(a, b)` becomes a call of plain.hpp's Launch."""
    edits = Edits(text)
    for match in re.finditer(r"<<\s*<", code):  # formatters that know no CUDA leave a space
        number = line_of(text, match.start())
        start = len(code[:match.start()].rstrip())
        if code[start - 1:start] == ">":  # template arguments
            depth = 0
            while start > 0:
                start -= 1
                depth += {">": 1, "<": -1}.get(code[start], 0)
                if depth == 0:
                    break
        name = re.search(r"(?:::)?\b\w+(?:\s*::\s*\w+)*\s*$", code[:start])
        if not name:
            raise Refusal(f"line {number}: no kernel's name stands before <<<")
        start = name.start()
        close = re.compile(r">>\s*>").search(code, match.end())
        if not close:
            raise Refusal(f"line {number}: <<< without >>>")
        opening = re.compile(r"\s*\(").match(code, close.end())
        if not opening:
            raise Refusal(f"line {number}: no arguments follow the launch")
        args_from = opening.end()
        args_to = closing(code, args_from - 1)
        name = text[start:match.start()].strip()
        config, args = text[match.end():close.start()].strip(), text[args_from:args_to].strip()
        by = (f"::softmax::device::plain::Launch({config})([=](auto... a) __attribute__((no_sanitize_thread)) "
              f"{{ {name}(a...); }}{', ' if args else ''}{args})")
        edits.replace(start, args_to + 1, by)
    return edits.apply()


def specifiers(text, code):
    """__global__ is static here and __device__ inline: neither is said twice."""
    edits = Edits(text)
    for match in re.finditer(rf"{SPECIFIER}(?:\s+{SPECIFIER})+", code):
        words = re.findall(SPECIFIER, match.group())
        if "__global__" not in words and "__device__" not in words:
            continue
        dropped = {"inline", "__inline__", "__inline", "__noinline__"} | ({"static"} if "__global__" in words else set())
        edits.replace(match.start(), match.end(),
                      " ".join(w for w in words if w not in dropped and not w.startswith("extern")))
    return edits.apply()


def empty_main(text, code):
    edits = Edits(text)
    for match in re.finditer(r"\b(?:int|void)\s+main\s*\([^)]*\)\s*\{", code):
        edits.replace(match.end(), closing(code, match.end() - 1), " ")
    return edits.apply()


def drop_includes(text, code):
    return re.sub(rf"^[ \t]*#[ \t]*include[ \t]*[<\"]{KNOWN_HEADERS}[>\"][^\n]*", "", text, flags=re.M)


def rename(text, code):
    """A plain file's own `softmax` must not meet our namespace of that name."""
    edits = Edits(text)
    for match in re.finditer(r"\bsoftmax\b", code):
        if not re.search(r"#[ \t]*include[^\n]*$", code[:match.start()]):
            edits.replace(match.start(), match.end(), "softmax_")
    return edits.apply()


def paste_includes(path, seen, chain=()):
    """The file's text with the local headers that lie beside it pasted in, each under its own name and lines."""
    path = path.resolve()
    if path in chain:
        raise Refusal(f"{path.name} includes itself")
    try:
        text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    except OSError as error:
        raise Refusal(f"cannot be read: {error.strerror}") from None
    code, _ = mask(text)
    edits = Edits(text)
    once = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*", re.M)
    for match in once.finditer(code):
        edits.replace(match.start(), match.end(), "")
    out = edits.apply()
    lines = []
    for number, line in enumerate(out.split("\n"), 1):
        match = re.match(r'[ \t]*#[ \t]*include[ \t]*"([^"]+)"', line)
        header = path.parent / match.group(1) if match else None
        if header and header.is_file():
            header = header.resolve()
            if header in seen:  # it said #pragma once
                lines.append("")
                continue
            inner = paste_includes(header, seen, chain + (path,))
            if once.search(mask(header.read_text(encoding="utf-8", errors="replace"))[0]):
                seen.add(header)
            lines.append(f'#line 1 "{header}"\n{inner}\n#line {number + 1} "{path}"')
        else:
            lines.append(line)
    return "\n".join(lines)


def directives(comments, text):
    """What the comments state: {"launch": [(line, statement)], "takes": [...]}; a statement ends where its brackets do."""
    found = {"launch": [], "takes": []}
    for i, (at, comment) in enumerate(comments):
        match = re.match(r"(?://+!?|/\*+)\s*(launch|takes):\s*(.*?)\s*(?:\*/)?$", comment, re.S)
        if not match:
            continue
        statement, j = match.group(2), i + 1
        while statement.count("(") > statement.count(")") and j < len(comments) and comments[j][1].startswith("//"):
            statement += " " + comments[j][1].lstrip("/ ").strip()
            j += 1
        found[match.group(1)].append((line_of(text, at), " ".join(statement.split()).rstrip(";").strip()))
    return found


def suggestion(code):
    """The launch line of the file's only kernel that takes two pointers and two sizes, if there is one such."""
    kernels = []
    for match in re.finditer(r"__global__\b[^;{}()]*(?:__launch_bounds__\s*\([^)]*\)[^;{}()]*)?\b(\w+)\s*\(([^)]*)\)\s*\{", code):
        names, sizes = [], iter(["N", "C"])
        for parameter in match.group(2).split(","):
            if "*" in parameter:
                names.append("in" if re.search(r"\bconst\b", parameter) else "out")
            else:
                names.append(next(sizes, "?"))
        kernels.append((match.group(1), names))
    fitting = [(name, args) for name, args in kernels if sorted(args) == ["C", "N", "in", "out"]]
    if len(kernels) == 1 and fitting:
        return f"// launch: {fitting[0][0]}<<<N, 256>>>({', '.join(fitting[0][1])})"
    return None


HOW = """Add a comment that launches it, in CUDA's own words; out, in, N (rows), C (columns) and stream are there:
    {launch}
and, if it is for some shapes only, one that says which:
    // takes: C % 4 == 0
Or register it as the kernels of this project are: #include "kernels/prelude.hpp" and a last line
    SOFTMAX_KERNEL(1, "my_softmax", "its idea in one line", launch)"""

WRAPPER = """
#undef N
#undef C
#undef in
#undef out
#undef stream
namespace {{
void softmax_judge_launch(const ::softmax::Problem& p) {{
  [[maybe_unused]] float* const out = static_cast<float*>(p.out);
  [[maybe_unused]] float* const in = static_cast<float*>(const_cast<void*>(p.in));
  [[maybe_unused]] const int N = int(p.rows), C = int(p.cols);
  [[maybe_unused]] const cudaStream_t stream = static_cast<cudaStream_t>(p.stream);
  const ::softmax::device::plain::Enclosure enclosure(p, {scratch});
#line {line} "{path}"
  {launch};
#line 1 "the launch function of {name}"
  ::softmax::device::plain::end_launch();
}}
std::string softmax_judge_supports(const ::softmax::Problem& p) {{
  if (p.in_stride != p.cols || p.out_stride != p.cols) return "takes dense rows only";
  [[maybe_unused]] const int N = int(p.rows), C = int(p.cols);
#line {takes_line} "{path}"
  return ({takes}) ? "" : "takes {takes_text}";
}}
}}
#line 1 "{path}"
SOFTMAX_KERNEL(1, "{stem}", "a plain CUDA file", softmax_judge_launch, .blocks = {{0}}, .exp = ::softmax::Exp::{exp},
               .divide = ::softmax::Divide::{divide}, .alignment = 256, .supports = softmax_judge_supports{workspace})
"""


def flavour(code):
    """Whose exp and which division the error bound must allow for."""
    exp = "exp2_folded" if re.search(r"\bexp2f?\s*\(", code) else "fast" if re.search(r"\b__exp(10)?f\s*\(", code) else "expf"
    return exp, "fast" if re.search(r"\b(__fdividef|__frcp_r[nzud]|__powf)\b", code) else "reciprocal"


def obstacles(text, code):
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", line)
        if match and not re.fullmatch(KNOWN_HEADERS, match.group(1)) and re.match(FOREIGN_HEADERS, match.group(1)):
            found.append(f"<{match.group(1)}> at line {number}")
    for pattern, what in OBSTACLES:
        if match := re.search(pattern, code):
            found.append(what.format(match.group(1) if match.groups() else "") + f" at line {line_of(code, match.start())}")
    return found


def translate(path):
    """(text for g++ or None, text for nvcc, what keeps the CPU device out)."""
    text = paste_includes(path, set())
    code, comments = mask(text)
    head = f'#line 1 "{path.resolve()}"\n'
    if re.search(r"\bSOFTMAX_KERNEL\s*\(", code):
        whole = path.read_text(encoding="utf-8", errors="replace")
        return head + whole, head + whole, []
    stated = directives(comments, text)
    if not re.search(r"\b__global__\b", code):
        raise Refusal("no __global__ function: nothing to judge")
    if len(stated["launch"]) != 1:
        lines = ", ".join(str(line) for line, _ in stated["launch"])
        raise Refusal((f"launch lines at {lines}: keep one; put several launches into a host function, and launch that"
                       if lines else "it says nowhere how it is launched") + ".\n" +
                      HOW.format(launch=suggestion(code) or "// launch: my_softmax<<<N, 256>>>(out, in, N, C)"))
    if len(stated["takes"]) > 1:
        raise Refusal("more than one line `takes:`; join them with &&")
    if re.search(r"\b(__half|half|__nv_bfloat16|nv_bfloat16)\s*\*\s*(__restrict__\s*)?(out|in|inp|input|output)\b", code):
        raise Refusal("it reads or writes 16-bit floats; what is judged is fp32 in and fp32 out")
    takes_line, takes = stated["takes"][0] if stated["takes"] else (1, "true")
    exp, divide = flavour(code)
    allocates = re.search(r"\bcudaMalloc", code) is not None

    def wrapped(body, launch):
        quoted = takes.replace("\\", "\\\\").replace('"', '\\"')
        return ('#include "properties/judge/plain.hpp"\n' + head + body + WRAPPER.format(
            line=stated["launch"][0][0], launch=launch, path=path.resolve(), name=path.name, stem=path.stem, exp=exp,
            workspace=", .workspace = ::softmax::device::plain::workspace" if allocates else "",
            scratch="::softmax::device::plain::workspace(p)" if allocates else "0",
            divide=divide, takes=takes, takes_text=quoted, takes_line=takes_line))

    text, launch = rename(text, code), re.sub(r"\bsoftmax\b", "softmax_", stated["launch"][0][1])
    gpu = wrapped(text, launch)
    found = obstacles(text, mask(text)[0])
    if found:
        return None, gpu, found
    for step in (empty_main, drop_includes, specifiers, shared, launches):
        text = step(text, mask(text)[0])
    return wrapped(text, launches(launch, mask(launch)[0])), gpu, []


def write(path, text):
    """Only what changed: what is built from it stays built."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--cpu", type=pathlib.Path)
    parser.add_argument("--gpu", type=pathlib.Path)
    options = parser.parse_args()
    try:
        cpu, gpu, found = translate(options.file)
    except Refusal as why:
        print(f"{options.file}: {why}", file=sys.stderr)
        return 2
    for text, to in ((cpu, options.cpu), (gpu, options.gpu)):
        if text is not None and to:
            write(to, text)
    print("".join(line + "\n" for line in found), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
