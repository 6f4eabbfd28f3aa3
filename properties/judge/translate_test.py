#!/usr/bin/env python3
"""What translate.py makes of CUDA's words, and where it gives up."""

import pathlib
import re
import tempfile
import unittest

import translate

KERNEL = "__global__ void k(float* out, const float* in, int N, int C) { out[0] = in[0]; }\n"
LAUNCH = "// launch: k<<<N, 256>>>(out, in, N, C)\n"


def both(text, **others):
    """What translate makes of a file with this text; other files lie beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "my.cu"
        path.write_text(text)
        for name, content in others.items():
            (path.parent / f"{name}.h").write_text(content)
        return translate.translate(path)


def body(text):
    """The file's own lines after translation for g++, without what stands before and after."""
    cpu, _, obstacles = both(text + KERNEL + LAUNCH)
    assert not obstacles, obstacles
    return cpu.split("\n", 2)[2].split("__global__ void k(")[0]


def on(step, text):
    return step(text, translate.mask(text)[0])


class Shared(unittest.TestCase):
    def check(self, declaration, becomes):
        text = "__global__ void f() { " + declaration + " }"
        self.assertEqual(on(translate.shared, text), "__global__ void f() { " + becomes + " }")

    def test_declarations(self):
        self.check("__shared__ float s[32];", "SHARED(s, float[32]);")
        self.check("__shared__ float s;", "SHARED(s, float);")
        self.check("__shared__ float a[32], b[32];", "SHARED(a, float[32]); SHARED(b, float[32]);")
        self.check("__shared__ float a[8][WARP + 1];", "SHARED(a, float[8][WARP + 1]);")
        self.check("static __shared__ unsigned int n;", "SHARED(n, unsigned int);")
        self.check("__shared__ volatile float s[64];", "SHARED(s, volatile float[64]);")
        self.check("volatile __shared__ float s[64];", "SHARED(s, volatile float[64]);")
        self.check("__shared__ float s[A < B ? 1 : 2], t;", "SHARED(s, float[A < B ? 1 : 2]); SHARED(t, float);")
        self.check("__shared__ pair<int, float> s[4];", "SHARED(s, pair<int, float>[4]);")
        self.check("__shared__ __align__(16) float s[128];", "SHARED_ALIGNED(16, s, float, [128]);")
        self.check("__shared__ alignas(8) float s;", "SHARED_ALIGNED(8, s, float, );")
        self.check("extern __shared__ float s[];", "SHARED_DYNAMIC(s, float);")
        self.check("extern __shared__ __align__(16) unsigned char s[];", "SHARED_DYNAMIC(s, unsigned char);")

    def test_lines_stay(self):
        text = "__global__ void f() { __shared__ float a[32],\n    b[32];\n int x; }"
        self.assertEqual(on(translate.shared, text).index("int x"), len("__global__ void f() { ") +
                         len("SHARED(a, float[32]); SHARED(b, float[32]);") + 3)
        self.assertEqual(on(translate.shared, text).count("\n"), 2)

    def test_at_file_scope(self):
        self.assertIn("#define s (static_cast<float*>(", on(translate.shared, "extern __shared__ float s[];\n"))
        with self.assertRaisesRegex(translate.Refusal, "line 2: a __shared__ variable outside"):
            on(translate.shared, "\n__shared__ float s[2];\n")

    def test_what_it_does_not_understand(self):
        with self.assertRaisesRegex(translate.Refusal, "line 1: this form of __shared__"):
            on(translate.shared, "void f() { __shared__ float (*p)[3]; }")

    def test_comments_and_strings_are_left_alone(self):
        for text in ('// __shared__ float s[2];\n', '/* __shared__\n float s; */', 'void f() { puts("__shared__ int x;"); }',
                     'auto s = R"(__shared__ int "x;)";', "char c = '\"'; // __shared__ int x;"):
            self.assertEqual(on(translate.shared, text), text)


class Launches(unittest.TestCase):
    def check(self, launch, name, config, arguments):
        got = on(translate.launches, launch)
        self.assertEqual(got, f"::softmax::device::plain::Launch({config})([=](auto... a) "
                              f"__attribute__((no_sanitize_thread)) {{ {name}(a...); }}, {arguments});")

    def test_forms(self):
        self.check("k<<<N, 256>>>(out, in);", "k", "N, 256", "out, in")
        self.check("k <<< dim3(N, 1), B >>> (a);", "k", "dim3(N, 1), B", "a")
        self.check("k<float, 4><<<g, b, n * sizeof(float), s>>>(f(a, b), c);", "k<float, 4>", "g, b, n * sizeof(float), s",
                   "f(a, b), c")
        self.check("k << <N, 256 >> > (a);", "k", "N, 256", "a")
        self.check("my::ns::k<<<1, 2>>>(a);", "my::ns::k", "1, 2", "a")
        self.check("k<pair<int, int>><<<1, 2>>>(a);", "k<pair<int, int>>", "1, 2", "a")

    def test_around(self):
        got = on(translate.launches, "if (x) a<<<1, 2>>>(p);\nelse b<<<3, 4>>>();")
        self.assertTrue(got.startswith("if (x) ::softmax::"), got)
        self.assertIn("\nelse ::softmax::device::plain::Launch(3, 4)(", got)
        self.assertTrue(got.endswith("{ b(a...); });"), got)

    def test_several_lines(self):
        got = on(translate.launches, "k<<<N,\n  256>>>(\n  out,\n  in);\nx")
        self.assertEqual(got.split("\n")[4], "x")

    def test_shifts_are_no_launches(self):
        self.assertEqual(on(translate.launches, "x = a << 3 >> 1; vector<vector<vector<int>>> v;"),
                         "x = a << 3 >> 1; vector<vector<vector<int>>> v;")

    def test_refusals(self):
        with self.assertRaisesRegex(translate.Refusal, "line 1: <<< without >>>"):
            on(translate.launches, "k<<<1, 2(x);")
        with self.assertRaisesRegex(translate.Refusal, "no arguments follow"):
            on(translate.launches, "k<<<1, 2>>>;")


class Rest(unittest.TestCase):
    def test_specifiers(self):
        for text, becomes in (("static __global__ void k()", "__global__ void k()"),
                              ("inline __device__ float f()", "__device__ float f()"),
                              ("static __device__ __forceinline__ int f()", "static __device__ __forceinline__ int f()"),
                              ("__host__ __device__ __inline__ int f()", "__host__ __device__ int f()"),
                              ('extern "C" __global__ void k()', "__global__ void k()"),
                              ("static inline int f()", "static inline int f()")):
            self.assertEqual(on(translate.specifiers, text), becomes)

    def test_main_does_nothing(self):
        self.assertEqual(on(translate.empty_main, "int main(int c, char** v) {\n  if (x) { y(); }\n}\nint z;"),
                         "int main(int c, char** v) { \n\n}\nint z;")

    def test_headers(self):
        text = body("#include <cuda_runtime.h>\n#include <math.h>\n#include <cooperative_groups/reduce.h>\n#include <map>\n")
        self.assertEqual(text, "\n#include <math.h>\n\n#include <map>\n")

    def test_a_kernel_called_softmax(self):
        text = '__global__ void softmax(float* out) { out[0] = 1; } // softmax\n// launch: softmax<<<N, 1>>>(out)\n'
        cpu, gpu, _ = both(text)
        self.assertIn("softmax_(float* out)", cpu)
        self.assertIn("// softmax\n", cpu)
        self.assertIn("{ softmax_(a...); }", cpu)
        self.assertIn("softmax_<<<N, 1>>>(out);", gpu)

    def test_local_headers_are_pasted_under_their_own_name(self):
        cpu, _, _ = both('#include "a.h"\n#include "a.h"\n' + KERNEL + LAUNCH,
                         a="#pragma once\n__device__ inline int f() { return 1; }\n")
        self.assertEqual(cpu.count("__device__ int f()"), 1)
        self.assertRegex(cpu, r'#line 1 "[^"]*/a.h"')
        self.assertRegex(cpu, r'#line 2 "[^"]*/my.cu"')

    def test_a_registered_file_passes_through(self):
        text = '#include "kernels/prelude.hpp"\nSOFTMAX_KERNEL(8, "v8", "idea", launch)\n'
        cpu, gpu, obstacles = both(text)
        self.assertTrue(cpu.endswith(text) and gpu.endswith(text) and not obstacles)

    def test_obstacles(self):
        for text, why in (('__device__ void f() { asm volatile("mov;"); }\n', "inline PTX at line 1"),
                          ("#include <cub/cub.cuh>\n", "<cub/cub.cuh> at line 1"),
                          ("\n#include <cute/tensor.hpp>\n", "<cute/tensor.hpp> at line 2"),
                          ("__device__ half h;\n", "16-bit floats at line 1")):
            cpu, gpu, obstacles = both(text + KERNEL + LAUNCH)
            self.assertIsNone(cpu)
            self.assertIn(why, obstacles)
            self.assertIn(text, gpu)
        self.assertEqual(both("// asm\n" + KERNEL + LAUNCH)[2], [])

    def test_takes_and_flavour(self):
        cpu, _, _ = both("// takes: C % 4 == 0 && N < 9\n" + KERNEL.replace("in[0]", "__expf(in[0])") + LAUNCH)
        self.assertIn('return (C % 4 == 0 && N < 9) ? "" : "takes C % 4 == 0 && N < 9";', cpu)
        self.assertIn("Exp::fast", cpu)
        self.assertIn("Divide::reciprocal", cpu)

    def test_a_launch_line_of_several_lines(self):
        cpu, _, _ = both(KERNEL + "// launch: k<<<N, 256>>>(out, in,\n//     N, C);\n")
        self.assertIn("{ k(a...); }, out, in, N, C);", cpu)

    def test_lines_keep_their_numbers(self):
        text = 'int a;\n__global__ void k(float* o) {\n  __shared__ float a[2],\n   b;\n  o[0] = 1;\n}\nint main() {\n\n}\nint here;\n'
        cpu, gpu, _ = both(text + "// launch: k<<<1, 1>>>(out)\n")
        for out in (cpu, gpu):
            lines = out.split("\n")
            first = next(i for i, line in enumerate(lines) if re.match(r'#line 1 ".*my.cu"', line))
            self.assertEqual(lines[first + text.split("\n").index("int here;") + 1], "int here;")

    def test_refusals(self):
        for text, why in ((KERNEL, r"// launch: k<<<N, 256>>>\(out, in, N, C\)"),
                          (KERNEL.replace("k(", "k2(") + KERNEL, r"my_softmax<<<N, 256>>>"),
                          (KERNEL + LAUNCH + LAUNCH, "launch lines at 2, 3: keep one"),
                          ("int f();\n" + LAUNCH, "no __global__ function"),
                          (KERNEL.replace("float*", "half*") + LAUNCH, "fp32 in and fp32 out")):
            with self.assertRaisesRegex(translate.Refusal, why):
                both(text)


if __name__ == "__main__":
    unittest.main()
