"""Runs the seeded faults under compute-sanitizer's four tools, and on the CPU device; writes a CSV.

    python3 analysis/sanitize.py build/properties/faults_test sanitizer.csv
    python3 analysis/sanitize.py PROGRAM OUT.csv --also 'build/properties/laws_test:*_gpu_*'

On a machine with a GPU and a program built with CUDA. A row is a kernel under a tool; `found` is
  yes      the tool names something    no       it does not
  crash    only a CUDA error came      timeout  the program hung, and nothing was named
  failed, skipped                      the test itself failed, or ran nothing
Near misses and the tests of --also have kind `clean`: there `no` is what should come. `cpu-device`
is no tool of NVIDIA's but our own checks. Only the standard library is used. Exit 1 if a test ran
nothing or something clean was reported, 2 if nothing can run.
"""

import argparse
import collections
import concurrent.futures
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "properties" / "faults"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
OURS = "cpu-device"
FIELDS = ("fault", "kind", "tool", "found", "message", "seconds")
KERNEL = re.compile(r"^__global__ void (\w+)\(", re.MULTILINE)
IDEA = re.compile(r'^(?:FAULT|NEAR_MISS)\(\s*\d+,\s*(\w+),\s*\d+,\s*"([^"]*)"', re.MULTILINE)
MARK = re.compile(r"// fault: (.+)$", re.MULTILINE)
NOT_A_FINDING = re.compile(
    r"COMPUTE-SANITIZER|(ERROR|RACECHECK) SUMMARY|Target application|Program hit|Saved host"
    r"|Host Frame|Error: process didn't|Error: No attachable|Error: Target|Internal|Warning:"
)
PLACE = re.compile(r"\b(\w+\.(?:cu|hpp):\d+)")

Job = collections.namedtuple("Job", "fault kind tool command")


def study(folder=FOLDER):
    """What the sources say: {name: {"kind", "idea", "file"}}, in order; a near miss is clean."""
    found = {}
    for file in sorted(folder.glob("*.cu")):
        text = file.read_text(encoding="utf-8")
        ideas = dict(IDEA.findall(text))
        heads = list(KERNEL.finditer(text))
        for head, following in zip(heads, [*heads[1:], None]):
            body = text[head.start() : following.start() if following else len(text)]
            mark = MARK.search(body)
            kind = mark[1] if mark else "clean"
            found[head[1]] = {"kind": kind, "idea": ideas[head[1]], "file": file.name}
    return found


def tests(program, pattern):
    """The full names of the tests of a gtest program that match."""
    command = [program, "--gtest_list_tests", f"--gtest_filter={pattern}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    suite, found = "", []
    for line in text.splitlines():
        if line.startswith("  "):
            found.append(suite + line.split("#")[0].strip())
        elif "." in line:
            suite = line.split("#")[0].strip()
    return found


def jobs(args):
    def under(tool, program, test):
        sanitizer = [args.sanitizer, "--tool", tool, "--error-exitcode", "9"]
        return [*(sanitizer if tool != OURS else []), program, f"--gtest_filter={test}"]

    for name, fault in study().items():
        clean = fault["kind"] == "clean"
        prefix = "NearMiss" if clean else "Fault"
        for tool in TOOLS:
            test = f"{prefix}/Gpu.runs/{name}"
            yield Job(name, fault["kind"], tool, under(tool, args.program, test))
        test = "NearMiss/CpuClean.is_clean_and_right/" if clean else "Fault/Cpu.is_reported/"
        yield Job(name, fault["kind"], OURS, under(OURS, args.program, test + name))
    for also in args.also:
        program, _, pattern = also.partition(":")
        for test in tests(program, pattern or "*"):
            for tool in TOOLS:
                name = f"{Path(program).name} {test}"
                yield Job(name, "clean", tool, under(tool, program, test))


def first_finding(text):
    """The first thing that compute-sanitizer names, with the first line of source; or ''."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        said = line.removeprefix("========= ")
        if said == line or said[:1].isspace() or not said or NOT_A_FINDING.search(said):
            continue
        rest = "\n".join(lines[i : i + 4])
        place = PLACE.search(rest)
        return said + (f" ({place[1]})" if place and place[1] not in said else "")
    return ""


def judge(job, status, text):
    """(found, message) of a run; `status` is None if it ran out of time."""
    if job.tool == OURS:
        if "Running 1 test" not in text or status is None:
            return "failed", "no such test" if status is not None else "timeout"
        passed = status == 0
        if job.kind == "clean":
            return ("no", "") if passed else ("yes", text.strip().splitlines()[-1])
        said = re.search(r"^reported: (.*)$", text, re.MULTILINE)
        return ("yes", said[1] if said else "") if passed else ("no", "")
    if message := first_finding(text):
        return "yes", message
    if status is None:
        return "timeout", ""
    if error := re.search(r"Program hit (.*)", text):
        return "crash", error[1]
    if "SKIPPED" in text:
        return "skipped", ""
    if "Running 1 test" not in text or status not in (0, 9):
        return "failed", (text.strip().splitlines() or ["no output"])[-1]
    return ("no", "") if status == 0 else ("yes", "no message")


def run(job, timeout):
    """One process, which must not outlive the timeout, nor may its children."""
    start = time.monotonic()
    process = subprocess.Popen(
        job.command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | {"SOFTMAX_RUN_FAULTS": "1"},
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        status = None
    found, message = judge(job, status, text)
    return {
        "fault": job.fault,
        "kind": job.kind,
        "tool": job.tool,
        "found": found,
        "message": message[:200],
        "seconds": f"{time.monotonic() - start:.1f}",
    }


def main(argv=None):
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("program", help="faults_test")
    parser.add_argument("out", type=Path, help="the CSV to write")
    parser.add_argument("--also", action="append", default=[], metavar="PROGRAM:FILTER",
                        help="tests that must be clean too, each in a process of its own")
    parser.add_argument("--sanitizer", default="compute-sanitizer")
    parser.add_argument("--timeout", type=float, default=30, help="seconds a run (default: 30)")
    parser.add_argument("--jobs", type=int, default=8, help="runs at a time (default: 8)")
    args = parser.parse_args(argv)
    for program in (args.sanitizer, args.program, *(also.partition(":")[0] for also in args.also)):
        if not shutil.which(program):
            print(f"sanitize: {program}: no such program", file=sys.stderr)
            return 2
    args.program = shutil.which(args.program)
    todo = list(jobs(args))
    # In some sandboxes the tools refuse the device, and say so as they say that a fault is found.
    trial = run(next(job for job in todo if job.kind == "clean"), 4 * args.timeout)
    if trial["found"] != "no":
        print("sanitize: {fault} under {tool}: {found} {message}".format(**trial), file=sys.stderr)
        return 2
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda job: run(job, args.timeout), todo))
    with args.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    bad = [
        row
        for row in rows
        if row["found"] in ("failed", "skipped") or row["kind"] == "clean" and row["found"] != "no"
    ]
    for row in bad:
        print("{fault} under {tool}: {found} {message}".format(**row), file=sys.stderr)
    for tool in (*TOOLS, OURS):
        mine = [r for r in rows if r["tool"] == tool and r["kind"] != "clean"]
        print(f"{tool}: {sum(r['found'] == 'yes' for r in mine)} of {len(mine)} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
