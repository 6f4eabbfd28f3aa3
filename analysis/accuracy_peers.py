"""What other people's softmax makes of the rows that `accuracy --inputs=FOLDER` wrote.

    build/accuracy --inputs=in
    python analysis/accuracy_peers.py in out
    build/accuracy --outputs=out --out=results/accuracy/<gpu>-<date>-<sha>-ieee.json

Writes out/NAME/KIND-COLS.npy, and out/context.json with their versions. Needs torch; with a GPU
also triton, and it takes quack, Liger and FlashInfer where they are installed. Without one only
torch is asked, on the CPU. Exit 1: nothing to read.
"""

import argparse
import json
import sys
from pathlib import Path

try:
    import numpy as np
    import torch
except ImportError as error:
    sys.exit(f"accuracy_peers: {error}; it wants a Python with torch and numpy")

IMPLS = ("torch", "torch-compile", "triton", "quack", "liger", "flashinfer", "softmax-lab")


class Cpu:
    """What torch_gpu.Gpu is where there is a GPU."""

    impls = ("torch",)

    def load(self, name):
        return lambda x, y: torch.softmax(x, -1, out=y), f"PyTorch {torch.__version__}, eager"

    def context(self):
        return {"torch": f"{torch.__version__}, on the CPU"}


def machine():
    if not torch.cuda.is_available():
        return Cpu(), "cpu"
    import torch_gpu

    gpu = torch_gpu.Gpu("none", max_autotune=False)
    gpu.impls = IMPLS
    return gpu, "cuda"


def main(arguments):
    """Command line entry; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", type=Path)
    parser.add_argument("outputs", type=Path)
    options = parser.parse_args(arguments)
    files = sorted(options.inputs.glob("*.npy"))
    if not files:
        print(f"accuracy_peers: no .npy in {options.inputs}", file=sys.stderr)
        return 1
    by, device = machine()
    for file in files:
        x = torch.from_numpy(np.load(file)).to(device)
        by.x = [x]
        for impl in by.impls:
            try:
                launch, _ = by.load(impl)
                y = launch(x, torch.full_like(x, float("nan")))
            except Exception as error:  # a peer that refuses a width has no row there
                print(f"accuracy_peers: {impl}, {file.name}: {error}", file=sys.stderr)
                continue
            (options.outputs / impl).mkdir(parents=True, exist_ok=True)
            np.save(options.outputs / impl / file.name, y.cpu().numpy())
    versions = {key: value for key, value in by.context().items() if key in ("cudnn", *IMPLS)}
    (options.outputs / "context.json").write_text(json.dumps(versions))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
