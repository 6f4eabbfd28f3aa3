"""Runs every notebook of analysis/ without a display; fails on the first error of each.

python analysis/run_notebooks.py [folder]      executed copies and figures into folder
                                               (default build/notebooks)
python analysis/run_notebooks.py --in-place    into analysis/ itself, to commit them
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

HERE = Path(__file__).resolve().parent
FAILURES = (CellExecutionError, CellTimeoutError, DeadKernelError)


class ThisPython(KernelSpecManager):
    """The kernel "python3" is the interpreter that runs this script, whatever others there are."""

    def get_kernel_spec(self, kernel_name):
        command = [sys.executable, "-m", "ipykernel_launcher", "--log-level=ERROR"]
        command += ["-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


def run(path, out):
    """Executes one notebook in its own folder and writes it into `out`; raises FAILURES.

    One that fails is written too, to be looked at, but never over the notebook itself.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=600,
        record_timing=False,
        resources={"metadata": {"path": path.parent}},
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=ThisPython()),
    )
    try:
        client.execute()
    except FAILURES:
        if out != path.parent:
            nbformat.write(notebook, out / path.name)
        raise
    nbformat.write(notebook, out / path.name)


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE.parent / "build" / "notebooks")
    parser.add_argument("--in-place", action="store_true", help="write into analysis/ itself")
    args = parser.parse_args(argv)
    out = HERE if args.in_place else args.folder.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ["SOFTMAX_FIGURES"] = str(out)
    if "SOFTMAX_RESULTS" in os.environ:  # a kernel runs in another folder than we do
        os.environ["SOFTMAX_RESULTS"] = os.path.abspath(os.environ["SOFTMAX_RESULTS"])
    os.environ.pop("MPLBACKEND", None)  # a backend of its own would leave the pictures out
    notebooks, failed = sorted(HERE.glob("*.ipynb")), 0
    for path in notebooks:
        start = time.monotonic()
        try:
            run(path, out)
            took = time.monotonic() - start
            print(f"{path.name}: passed, {took:.1f} s, in {os.path.relpath(out)}", flush=True)
        except FAILURES as error:
            failed += 1
            why = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip().splitlines()[-1]  # no colours
            print(f"{path.name}: failed: {why}", flush=True)
    if not notebooks:
        print("run_notebooks: no notebook found")
    return 1 if failed or not notebooks else 0


if __name__ == "__main__":
    sys.exit(main())
