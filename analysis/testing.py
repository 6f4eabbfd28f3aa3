"""Results files for the tests of analysis/, as ./bench writes them."""

import json

import numpy as np

COPY_US = 800.0
CPU = {"device": "CPU device", "device_id": "cpu", "simulated": "true"}  # context


def row(version="V6", math="ieee", mode="cold", block=32, us=1000.0, shape=(8192, 50257), **more):
    """One benchmark as Google Benchmark 1.7.1 writes it."""
    n, c = shape
    at = f"/block:{block}" if block else ""
    name = f"softmax/{version}/fp32/{math}/{mode}/N:{n}/C:{c}{at}/manual_time"
    entry = {"name": name, "run_name": name, "run_type": "iteration", "iterations": 1}
    entry |= {"real_time": us, "cpu_time": us, "time_unit": "us", "label": f"idea of {version}"}
    entry |= {"us": us, "us/token": us / n, "GB/s": 8 * n * c / us / 1e3, "N": n, "C": c}
    entry |= {"us_min": 0.99 * us, "us_p25": 0.999 * us, "us_p75": 1.001 * us}
    entry |= {"n": 50, "ci%": 0.05, "bytes": 8 * n * c}
    if mode != "sim":
        entry["%copy"] = 100 * COPY_US / us
    if block:
        entry |= {"block": block, "version": int(version[1:]), "regs": 32}
    return entry | more


def failed(version="V7", **more):
    zero = {"us": 0.0, "us/token": 0.0, "%copy": 0.0}
    why = {"error_occurred": True, "error_message": "INCORRECT: row 3"}
    return row(version, **more) | zero | why


def write(path, rows, **context):
    """A results file; `context` overrides, None leaves a key out."""
    gpu = {"device": "NVIDIA H200", "device_id": "gpu", "simulated": "false"}
    if context.get("schema") == "2":
        gpu["card"] = "c0ffee00"
    build = {"schema": "1", "git_sha": "abc1234", "git_dirty": "false"}
    context = gpu | build | {"date": "2026-11-29T20:00:00+00:00", "input": "noise"} | context
    path.parent.mkdir(parents=True, exist_ok=True)
    context = {key: value for key, value in context.items() if value is not None}
    path.write_text(json.dumps({"context": context, "benchmarks": rows}))
    return path


def sampled(own, copy=(), **more):
    """(row, its samples, its copy's) of schema 2, from samples in microseconds."""
    own, copy = np.asarray(own, "<f4"), np.asarray(copy, "<f4")
    least, p25, us, p75 = np.percentile(own.astype(float), [0, 25, 50, 75])
    reach = 0.98 * np.sqrt(len(own))
    low, high = np.sort(own)[[int(len(own) / 2 - reach), int(len(own) / 2 + reach)]]
    entry = {"us_min": least, "us_p25": p25, "us_p75": p75, "n": len(own)}
    entry["ci%"] = 50 * float(high - low) / us
    if len(copy):
        entry["us_copy"] = float(np.median(copy))
        entry["%copy"] = 100 * entry["us_copy"] / us
    return row(us=us, **entry | more), own, copy


def write_sampled(path, made, **context):
    """A results file of what `sampled` made, with its sidecar."""
    rows, at = [], 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".samples.f32").open("wb") as sidecar:
        for entry, own, copy in made:
            rows.append(entry | {"samples_at": at})
            at += len(own) + len(copy)
            sidecar.write(own.tobytes() + copy.tobytes())
    name = path.with_suffix(".samples.f32").name
    return write(path, rows, **{"schema": "2", "flush": "memset 2x L2", "samples": name} | context)


def write_sim(path, **context):
    return write(path, [row(mode="sim")], **CPU, **context)


def write_ladder(folder, faster=1.0, **context):
    """A whole ladder, V1 to V8 in both maths."""
    for math, factor in (("ieee", 1.0), ("fast", 0.9)):
        rows = [row("copy", math, block=None, us=COPY_US)]
        for version in range(1, 9):
            for block in [32] if version == 3 else [32, 256, 1024]:
                us = 8000 * block / 32 if version == 1 else 4000 / version + 10000 / block
                rows.append(row(f"V{version}", math, block=block, us=us * factor / faster))
        write(folder / f"ladder-{math}.json", rows, math=math, **context)


def counted(version, block, **more):
    """Counters of a row at 16 x 1571, V1 and V5 with a thread a row; see results/README.md."""
    alone = version in ("V1", "V5")
    passes = 2 if int(version[1:]) >= 5 else 3
    each = 32 if alone else 4.5
    asked = {"ld": 4 * 1571 * passes, "st": 4 * 1571}
    entry = {"barriers": float(version == "V2") * 13, "shuffles": 12.0 * (not alone)}
    sectors = {op: bytes / 128 * each for op, bytes in asked.items()}
    for op, bytes in asked.items():
        entry[f"smsp__sass_data_bytes_mem_global_op_{op}"] = bytes
        entry[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}"] = sectors[op]
        entry[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}"] = 0.5
    entry["bytes_transferred"] = 32 * sum(sectors.values())
    entry |= {"x_min": entry["bytes_transferred"] / 8 / 1571, "traced_rows": 16.0}
    return row(version, mode="sim", block=block, shape=(16, 1571), **entry, **more)


def write_counted(folder, **context):
    """The ladder of the CPU device, V1 to V8, with counters."""
    rows = [counted(f"V{v}", b) for v in range(1, 9) for b in ([32] if v == 3 else [32, 256])]
    rows.append(row(mode="sim", shape=(16, 128), label="idea of V6 @ scores.npy"))
    return write(folder / "ladder-ieee.json", rows, **CPU, **context)
