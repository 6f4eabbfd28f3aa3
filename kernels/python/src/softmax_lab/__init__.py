"""Softmax over the last axis of torch tensors and numpy arrays, by the kernels of softmax-lab."""

import sys
from contextlib import nullcontext
from importlib.metadata import version

from . import _core

__all__ = ["picked", "softmax"]
__version__ = version("softmax-lab")

_workspaces = {}  # (GPU, stream): (capture or 0, torch tensor)


def softmax(x, out=None, temperature=None, *, batch_invariant=False, overlap=False):
    """out = softmax(x / temperature) over the last axis; returns out.

    x: float32, float16 or bfloat16, at least one axis. A torch tensor, on the GPU or the CPU; a
    numpy array; or whatever speaks DLPack on the CPU, if `out` is given. On the CPU the kernels
    are simulated and checked, which is slow. The last axis must be contiguous, the others must
    make rows at one distance.
    out: of x's shape and device, of x's type or float32. It may be x, but not overlap it otherwise.
    temperature: a number above 0, or one float32 for each row in a contiguous array on x's device,
    whose values are not checked.
    batch_invariant: the bits of a row do not depend on the number of rows.
    overlap: on a GPU of compute capability 9.0 or later the kernel may begin before the one ahead
    of it in the stream ends; it waits for it before it reads x.

    A GPU is told on torch's current stream, and nothing waits; that stream may be capturing. There
    is no gradient. Raises ValueError for what is wrong or impossible, RuntimeError for a device
    that is absent or refuses.
    """
    torch = _torch_of(x)
    if torch is not None:
        if torch.is_grad_enabled() and (x.requires_grad or getattr(out, "requires_grad", False)):
            raise ValueError("softmax_lab has no gradient: detach(), or use torch.no_grad()")
        if out is None:
            out = torch.empty_like(x, memory_format=torch.contiguous_format)
    elif out is None:
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(x, numpy.ndarray):
            raise ValueError(f"out must be given for {type(x).__name__}")
        out = numpy.empty_like(x, order="C", subok=False)
    number, each = _split(temperature)
    arrays = _exported(x), _exported(out), number, _exported(each), batch_invariant, overlap
    if torch is None or not x.is_cuda:
        _core.run(*arrays, 0, _no_workspace)
        return out
    gpu = x.get_device()
    elsewhere = gpu != torch.cuda.current_device()
    with torch.cuda.device(gpu) if elsewhere else nullcontext():
        stream = torch.cuda.current_stream(gpu).cuda_stream
        _core.run(*arrays, stream, lambda size: _workspace(torch, gpu, stream, size))
    return out


def picked(x, out=None, temperature=None, *, batch_invariant=False):
    """What softmax() of these would start, such as "V10 512x8+4s c2"; "" if nothing."""
    number, each = _split(temperature)
    arrays = _exported(x), _exported(out), number, _exported(each), batch_invariant
    torch = _torch_of(x)
    with torch.cuda.device(x.get_device()) if torch and x.is_cuda else nullcontext():
        return _core.picked(*arrays)


def _torch_of(x):
    """torch, if x is one of its tensors; an argument of another kind imports nothing."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(x, torch.Tensor) else None


def _exported(array):
    """A tensor as a capsule: Tensor.__dlpack__() without a stream would order it before torch's
    default stream, which a stream that is being captured must not do.
    """
    torch = _torch_of(array)
    return array if torch is None else torch.utils.dlpack.to_dlpack(array)


def _split(temperature):
    """(a number, None) or (1, an array)."""
    if hasattr(temperature, "__dlpack__"):
        return 1.0, temperature
    return 1.0 if temperature is None else float(temperature), None


def _workspace(torch, gpu, stream, size):
    """The address of `size` bytes that were zero when they came, for launches on this stream alone.

    A graph has its own, since its replays may run beside the stream that it was captured on: the
    capture allocates it from the graph's memory and every replay begins by zeroing it, which also
    mends what a broken replay left. Calls of one capture on one stream share it.
    """
    capture = _core.capture(stream)
    known = _workspaces.get((gpu, stream))
    if known is None or known[0] != capture or known[1].numel() < size:
        known = capture, torch.zeros(size, dtype=torch.uint8, device=gpu)
        _workspaces[gpu, stream] = known
    return known[1].data_ptr()


def _no_workspace(size):
    raise RuntimeError(f"no memory of {size} bytes: arrays on a GPU must be torch tensors")
