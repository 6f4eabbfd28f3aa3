"""Tests of the installed package softmax_lab with torch: on the CPU device, and on a GPU if any."""

import pytest

torch = pytest.importorskip("torch")
softmax_lab = pytest.importorskip("softmax_lab")
softmax = softmax_lab.softmax

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() and softmax_lab._core.cuda else [])
TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2**-7}
on_gpu = pytest.mark.skipif(len(DEVICES) == 1, reason="no GPU, or no CUDA in the package")
on_each = pytest.mark.parametrize("device", DEVICES)


def noise(*shape, device="cuda", dtype=torch.float32):
    source = torch.Generator().manual_seed(shape[-1])
    return torch.randn(shape, generator=source).to(device, dtype)


def agrees(y, x, temperature=1.0):
    expected = torch.softmax(x.double() / temperature, -1)
    least = 2**-24 if y.dtype == torch.float16 else 0  # where float16 is subnormal
    torch.testing.assert_close(y.double(), expected, rtol=TOLERANCE[y.dtype], atol=least)


@on_each
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_types_shapes_and_places(device, dtype):
    for shape in ((7,), (2, 3, 40), (3, 1000)):
        x = noise(*shape, device=device, dtype=dtype)
        y = softmax(x)
        assert y.dtype == dtype and y.device == x.device and y.shape == x.shape
        agrees(y, x)
        wide = torch.empty_like(x, dtype=torch.float32)
        assert softmax(x, wide) is wide
        agrees(wide, x)
        before = x.clone()
        assert softmax(x, out=x) is x
        agrees(x, before)
    whole = noise(4, 64, device=device, dtype=dtype)
    agrees(softmax(whole[:, :37]), whole[:, :37])


@on_each
def test_temperatures(device):
    x, each = noise(6, 40, device=device), torch.linspace(0.5, 2, 6, device=device)
    agrees(softmax(x, temperature=0.5), x, 0.5)
    agrees(softmax(x, temperature=each), x, each.double()[:, None])


@on_each
def test_gradients_and_wrong_problems(device):
    x = noise(3, 40, device=device).requires_grad_()
    with pytest.raises(ValueError, match="gradient"):
        softmax(x)
    with torch.no_grad():
        agrees(softmax(x), x)
    agrees(softmax(x.detach()), x.detach())
    with pytest.raises(ValueError, match="contiguous()"):
        softmax(x.detach().T)
    if device == "cuda":
        for arguments in ({"out": torch.empty(3, 40)}, {"temperature": torch.ones(3)}):
            with pytest.raises(ValueError, match="another device"):
                softmax(x.detach(), **arguments)


# Of V8, V9 or V10, then of those that need a workspace, among them some that keep it.
SHAPES = [(64, 1024), (4, 128256), (1, 1 << 20), (3, 1 << 23)]


@on_gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_a_current_stream_is_obeyed(shape):
    x, side = torch.zeros(shape, device="cuda"), torch.cuda.Stream()
    y = noise(*shape)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        x.copy_(y)
        out = softmax(x)
        again = softmax(out, overlap=True)
    side.synchronize()
    agrees(out, y)
    agrees(again, out)


@on_gpu
def test_two_streams_at_one_time():
    streams = [torch.cuda.Stream() for _ in range(2)]
    for shape in SHAPES:
        x = [noise(*shape), -noise(*shape)]
        torch.cuda.synchronize()
        outs = [], []
        for _ in range(20):
            for i, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    outs[i].append(softmax(x[i]))
        torch.cuda.synchronize()
        for i in range(2):
            agrees(outs[i][0], x[i])
            assert all(torch.equal(out, outs[i][0]) for out in outs[i])


@on_gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_a_graph_beside_its_stream(shape):
    x, stream = noise(*shape), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        once = softmax(x)
    torch.cuda.synchronize()
    graph, same = torch.cuda.CUDAGraph(), torch.empty_like(x)
    with torch.cuda.graph(graph, stream=stream):
        twice = softmax(softmax(x, same))
    for _ in range(5):
        same.fill_(float("nan"))
        twice.fill_(float("nan"))
        torch.cuda.synchronize()
        graph.replay()  # on another stream than those of the calls beside it
        with torch.cuda.stream(stream):
            beside = softmax(x)
        torch.cuda.synchronize()
        assert torch.equal(same, once) and torch.equal(beside, once)
        agrees(twice, once)
    agrees(once, x)
