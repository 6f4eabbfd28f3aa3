"""Tests of the installed package softmax_lab with numpy, on the CPU device."""

import ctypes
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

softmax_lab = pytest.importorskip("softmax_lab")
softmax = softmax_lab.softmax

# A few units in the last place, and for float32 the error of the fast exp, which grows with |x|.
TOLERANCE = {np.float32: 2e-5, np.float16: 2e-3}


def exact(x, temperature=1.0):
    x = np.asarray(x, np.float64) / temperature
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def noise(*shape, dtype=np.float32):
    return np.random.default_rng(shape[-1]).normal(size=shape).astype(dtype)


def agrees(y, expected, tolerance=None):
    tolerance = tolerance or TOLERANCE[y.dtype.type]
    least = 2**-24 if y.dtype == np.float16 else 0  # where float16 is subnormal
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=tolerance, atol=least)


class Capsule:
    """An array by DLPack alone, as bfloat16 if its bits are."""

    def __init__(self, array, bfloat16=False):
        self.array, self.bfloat16 = array, bfloat16

    def __dlpack__(self):
        capsule = self.array.__dlpack__()
        if self.bfloat16:  # DLTensor: pointer, device of 8 bytes, axes of 4, then the type's code
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            ctypes.c_uint8.from_address(get(capsule, b"dltensor") + 20).value = 4
        return capsule


SHAPES = [(7,), (1,), (3, 33), (2, 3, 40), (2, 1, 3, 8), (4, 1), (1, 3000)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_and_types(shape, dtype):
    x = noise(*shape, dtype=dtype)
    before = x.copy()
    y = softmax(x)
    assert y.shape == x.shape and y.dtype == dtype and (x == before).all()
    agrees(y, exact(x))


def test_bfloat16_in_and_out_and_mixed():
    bits = (noise(3, 64).view(np.uint32) >> 16).astype(np.uint16)
    x = (bits.astype(np.uint32) << 16).view(np.float32)
    y, wide = np.empty_like(bits), np.empty_like(x)
    out = Capsule(y, True)
    assert softmax(Capsule(bits, True), out) is out
    agrees((y.astype(np.uint32) << 16).view(np.float32), exact(x), 2**-7)
    assert softmax(Capsule(bits, True), wide) is wide
    agrees(wide, exact(x))


def test_out_of_the_same_type_mixed_and_in_place():
    x = noise(4, 50, dtype=np.float16)
    for dtype in TOLERANCE:
        out = np.full((4, 50), np.nan, dtype)
        assert softmax(x, out) is out
        agrees(out, exact(x))
    expected = exact(x)
    assert softmax(x, out=x) is x
    agrees(x, expected)


def test_rows_at_a_distance():
    whole = noise(2, 3, 50)
    out = np.full((2, 3, 64), np.nan, np.float32)
    softmax(whole[:, :, :37], out[:, :, :37])
    agrees(out[:, :, :37], exact(whole[:, :, :37]))
    assert np.isnan(out[:, :, 37:]).all()
    agrees(softmax(whole[:, 1]), exact(whole[:, 1]))
    agrees(softmax(whole[:, None]), exact(whole[:, None]))  # an axis of one element, at distance 0
    column = whole[0, :, :1]
    assert (softmax(column) == 1).all()


def test_the_version_is_the_project_s():
    project = Path(__file__).parents[2] / "CMakeLists.txt"
    assert f"VERSION {softmax_lab.__version__}" in project.read_text()


@pytest.mark.parametrize("number", [0.5, 3, np.float32(2)])
def test_one_temperature(number):
    agrees(softmax(noise(3, 40), temperature=number), exact(noise(3, 40), float(number)))


@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 3, 1)])
def test_a_temperature_for_each_row(shape):
    x, each = noise(2, 3, 40), np.linspace(0.5, 2, 6, dtype=np.float32)
    each.flags.writeable = False
    agrees(softmax(x, temperature=each.reshape(shape)), exact(x, each.reshape(2, 3, 1)))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5), (2, 0, 4)])
def test_nothing_to_do(shape):
    x = np.empty(shape, np.float32)
    assert softmax(x).shape == shape and softmax_lab.picked(x) == ""


def test_what_is_read_may_be_read_only():
    x = noise(3, 40)
    x.flags.writeable = False
    agrees(softmax(x), exact(x))


def test_rows_of_nan_and_infinity():
    x = noise(4, 40)
    x[0, 3], x[1, 3], x[2], x[3, 3] = np.nan, np.inf, -np.inf, -np.inf
    y = softmax(x)
    assert np.isnan(y[:3]).all() and y[3, 3] == 0
    agrees(y[3], exact(x[3]))


def test_what_is_picked_need_not_depend_on_the_rows():
    few, many = np.empty((1, 1 << 21), np.float32), np.empty((3, 1 << 21), np.float32)
    assert softmax_lab.picked(few) != softmax_lab.picked(many)
    one, other = (softmax_lab.picked(x, batch_invariant=True) for x in (few, many))
    assert one == other
    agrees(softmax(noise(3, 40), batch_invariant=True), exact(noise(3, 40)))


def test_picked():
    kinds = {softmax_lab.picked(np.empty((1, c), np.float32))[:3] for c in (32, 4096, 1 << 22)}
    assert all(kind.startswith("V") for kind in kinds) and len(kinds) > 1
    x = noise(1, 1 << 21)
    assert softmax_lab.picked(x).startswith(("V11", "V12"))  # which need a workspace
    agrees(softmax(x), exact(x))


X = noise(4, 40)
READ_ONLY = np.empty((4, 40), np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "what, arguments",
    [
        ("at least one axis", [np.array(1, np.float32)]),
        ("float32, float16 or bfloat16", [X.astype(np.float64)]),
        ("float32, float16 or bfloat16", [X.astype(np.int32)]),
        ("x must have a contiguous last axis.*contiguous()", [X.T]),
        ("x must have a contiguous last axis.*contiguous()", [X[:, ::2]]),
        ("x must have a contiguous last axis.*contiguous()", [X[::-1]]),
        ("x must have a contiguous last axis.*contiguous()", [np.broadcast_to(X[0], (4, 40))]),
        ("x must have a contiguous last axis.*contiguous()", [noise(2, 3, 4, 5)[:, ::2]]),
        ("out must have a contiguous last axis", [X, np.empty((40, 4), np.float32).T]),
        ("out must have the shape", [X, np.empty((4, 41), np.float32)]),
        ("out must have the shape", [X, np.empty((160,), np.float32)]),
        ("fp32, not|takes fp32", [X, np.empty((4, 40), np.float16)]),
        ("out is no array that can be written", [X, READ_ONLY]),
        ("x is no array that can be read", [[1.0, 2.0], np.empty(2, np.float32)]),
        ("out must be given for list", [[1.0, 2.0]]),
        ("out must be given for Capsule", [Capsule(X)]),
        ("overlap", [X[:, :20], X[:, 10:30]]),
        ("temperature must be above 0", [X, None, 0.0]),
        ("temperature must be above 0", [X, None, float("nan")]),
        ("one float32 for each of the 4 rows", [X, None, np.ones(3, np.float32)]),
        ("one float32 for each of the 4 rows", [X, None, np.ones(4)]),
        ("temperature must be contiguous", [X, None, np.ones(8, np.float32)[::2]]),
    ],
)
def test_wrong_problems(what, arguments):
    before = X.copy()
    with pytest.raises(ValueError, match=what):
        softmax(*arguments)
    assert (X == before).all()


def test_a_workspace_for_each_stream_and_each_capture(monkeypatch):
    class Memory:
        def __init__(self, size, dtype, device):
            self.numel, self.data_ptr = lambda: size, lambda: id(self)
            made.append(self)

    made, capturing = [], [0]
    torch = SimpleNamespace(zeros=Memory, uint8=None)
    monkeypatch.setattr(softmax_lab, "_workspaces", {})
    monkeypatch.setattr(softmax_lab, "_core", SimpleNamespace(capture=lambda stream: capturing[0]))

    def get(stream, size, gpu=0, capture=0):
        capturing[0] = capture
        return softmax_lab._workspace(torch, gpu, stream, size)

    eager = get(1, 100)
    assert get(1, 50) == eager == get(1, 100)
    assert get(2, 100) != eager != get(1, 100, gpu=1)
    graph = get(1, 100, capture=7)
    assert graph != eager and get(1, 10, capture=7) == graph
    assert get(1, 100, capture=8) != graph
    larger = get(2, 200)
    assert get(2, 150) == larger and len(made) == 6


def test_torch_is_not_imported():
    code = "import sys, numpy, softmax_lab as s; s.softmax(numpy.ones(3, 'f4'))\n"
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
