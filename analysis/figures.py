"""Figures of the report: their look, and those of the ladder and the atlas.

Each is a function of data that gives a matplotlib Figure, drawn in colours that `svg` turns into
CSS variables, so that one figure serves light and dark.
"""

import io
import math
import re

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

import atlas
import results

INK, MUTED, RULE, PAPER = "#1f2429", "#666e77", "#d5dae0", "#fdfdfe"
SERIES = ("#0072b2", "#d55e00", "#008a65", "#a8578a", "#b37400", "#3a8fc4", "#7a5c2e", "#5b5fc7")
DARK = ("#4aa8e0", "#ff8a3d", "#2fc79b", "#dd8fbd", "#e8ae3a", "#8cc8ee", "#c3a06a", "#9a9df5")
VARIABLES = {INK: "ink", MUTED: "muted", RULE: "rule", PAPER: "paper"}
VARIABLES |= {colour: f"s{i}" for i, colour in enumerate(SERIES)}
STYLE = {
    "font.size": 9, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": RULE,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 10, "axes.titlelocation": "left", "axes.titleweight": "bold",
    "axes.grid": True, "grid.color": RULE, "grid.linewidth": 0.7, "axes.axisbelow": True,
    "axes.facecolor": "none", "savefig.facecolor": PAPER, "legend.frameon": False,
    "legend.fontsize": 8, "svg.fonttype": "none", "svg.hashsalt": "softmax-lab",
}
WIDTH = 7.6  # inches


styled = matplotlib.rc_context(STYLE)  # artists take their look when they are made


def label_grid(figure, axes, used, x, y):
    """What panels that share their axes have once: legend and labels. Hides the panels not used."""
    for ax in axes.flat[used:]:
        ax.set_visible(False)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    figure.supxlabel(x, fontsize=9)
    figure.supylabel(y, fontsize=9)
    return figure


@styled
def svg(figure, name, words):
    """The figure as an <svg> to stand in a page: its ids begin with name, words describe it."""
    out = io.StringIO()
    figure.savefig(out, format="svg", facecolor="none", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    box = re.search(r'viewBox="[^"]+"', text)[0]
    xmlns = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    words = words.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    head = f'<svg {xmlns} {box} role="img" aria-label="{words}">'
    return re.sub(r"<svg[^>]*>", head, text, count=1)


@styled
def png(figure, path, digest):
    """Writes a picture that says in its own words which data it was drawn from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Description": digest, "Software": None})


def grid(rows, columns, height, **more):
    """(figure, axes[rows][columns]) without a window; more: of Figure.subplots."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def plain(value, _=None):
    """0.5 -> "0.5", 2^17 -> "128K": a tick of a log axis."""
    if value >= 4096 and value % 1024 == 0:
        return f"{value / 1024**2:g}M" if value >= 1 << 20 else f"{value / 1024:g}K"
    return f"{value:g}" if value < 1e5 else f"{value:.0f}"


def log_ticks(axis, values, base=10, every=(1, 2, 5)):
    """A log axis of plain numbers, around values."""
    values = [value for value in values if value > 0]
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log", base=base)
    if base == 2:
        ticks = sorted(set(values))
        ticks = ticks[:: math.ceil(len(ticks) / 9)]
    else:
        low, high = min(values) / 1.3, max(values) * 1.3
        getattr(axis.axes, f"set_{axis.axis_name}lim")(low, high)
        ticks = [m * 10.0**e for e in range(-6, 9) for m in every if low <= m * 10.0**e <= high]
    axis.set_ticks(ticks)
    axis.set_major_formatter(FuncFormatter(plain))
    axis.set_minor_locator(NullLocator())


def look(names):
    """Colour and line style of each name, the same in every figure with the same names."""
    styles = ("-", (0, (4, 2)), (0, (1, 1)))
    return {name: {"color": SERIES[i % len(SERIES)], "ls": styles[i // len(SERIES) % 3]}
            for i, name in enumerate(names)}


def versions(parts):
    """All versions of cells, ours in order, then the peers."""
    rows = [row for part in parts for cell in part["cells"] for row in cell["ours"] + cell["peers"]]
    return sorted({row["version"] for row in rows}, key=lambda name: (
        int(name[1:]) if re.fullmatch(r"V\d+", name) else math.inf, name))


@styled
def roof(parts):
    """GB/s over the width or, where shapes differ in size, over the bytes, below the copy's."""
    looks = look(versions(parts))
    figure, axes = grid(len(parts), 1, 0.3 + 3.1 * len(parts))
    for ax, part in zip(axes[:, 0], parts):
        found = part["cells"]
        series, copies = {}, {}
        for cell in found:
            for row in cell["ours"] + cell["peers"]:
                at = cell["C"] if part["strip"] else row["bytes"]
                series.setdefault(row["version"], {}).setdefault(at, []).append(row["GB/s"])
            if cell["copy"]:
                copies[cell["C"] if part["strip"] else cell["copy"]["bytes"]] = cell["copy"]["GB/s"]
        for name in looks:
            if name in series:
                xs = sorted(series[name])
                own = looks[name] if part["strip"] else looks[name] | {"ls": ""}
                ax.plot(xs, [max(series[name][x]) for x in xs], ms=3.5, lw=1.5, label=name,
                        marker="o" if re.fullmatch(r"V\d+", name) else "D", **own)
        if copies:
            xs = sorted(copies)
            ax.plot(xs, [copies[x] for x in xs], color=INK, lw=2, ls=(0, (2, 1.5)), label="copy")
        log_ticks(ax.xaxis, [cell["C"] for cell in found] if part["strip"] else list(copies) or
                  [cell["ours"][0]["bytes"] for cell in found], base=2 if part["strip"] else 10)
        if not part["strip"]:
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1e6:g}"))
        ax.set_xlabel("columns" if part["strip"] else "MB read and written, log scale")
        ax.set_ylabel("GB/s")
        speeds = [*copies.values(), *(max(y) for each in series.values() for y in each.values())]
        if not part["strip"] and max(speeds) > 100 * min(speeds):
            log_ticks(ax.yaxis, speeds)
        else:
            ax.set_ylim(bottom=0)
        ax.set_title(atlas.title(part))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


@styled
def moved(rows):
    """GB/s of each version of a `best` table: what softmax needs, what the kernel asks for."""
    rows = rows[rows["number"].notna()]
    figure, axes = grid(1, 1, 0.9 + 0.36 * len(rows))
    ax = axes[0, 0]
    ys = np.arange(len(rows))
    bars = [("the least: one read, one write", rows["GB/s"], SERIES[0])]
    if "bytes_moved" in rows:
        bars.append(("what the kernel asks for", rows["bytes_moved"] / rows["us"] / 1e3, SERIES[4]))
    dram = {"dram_bytes_read", "dram_bytes_written"} <= set(rows)
    if dram and rows["dram_bytes_read"].notna().any():
        counted = (rows["dram_bytes_read"] + rows["dram_bytes_written"]) * rows["N"]
        bars.append(("what memory moved, counted", counted / rows["us"] / 1e3, SERIES[2]))
    height = 0.8 / len(bars)
    for i, (label, values, colour) in enumerate(bars):
        ax.barh(ys + (i - (len(bars) - 1) / 2) * height, values, 0.9 * height, color=colour,
                label=label)
    roofs = rows["GB/s"] / rows["%copy"] * 100
    if roofs.notna().any():
        ax.axvline(roofs.median(), color=INK, lw=1.2, ls=(0, (2, 1.5)), label="the copy")
    ax.set_yticks(ys, rows.index)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("GB/s")
    figure.legend(loc="outside upper left", ncols=4)
    return figure


def flavours(rows):
    """What they were measured in: ieee, fast or both."""
    return [math_ for math_ in ("ieee", "fast") if (rows["math"] == math_).any()]


@styled
def blocks(ladder):
    """us/token over the block, a panel a version, the others of its math behind it in grey."""
    curves = ladder[ladder["block"].notna() & ladder["number"].notna()]
    curves = curves.sort_values(["math", "number"], ascending=[False, True])
    names = list(dict.fromkeys(curves["version"]))
    copy = ladder[ladder["version"] == "copy"]["us/token"].min()
    looks, columns = look(flavours(curves)), 4
    lanes = -(-len(names) // columns)
    figure, axes = grid(lanes, columns, 0.5 + 1.7 * lanes, sharex=True, sharey=True)
    for ax, name in zip(axes.flat, names):
        for math_, maths in curves.groupby("math", sort=False):
            for version, part in maths.groupby("version"):
                part = part.sort_values("block")
                if version == name:
                    ax.plot(part["block"], part["us/token"], marker="o", ms=3, lw=1.6, label=math_,
                            zorder=3, **looks[math_])
                elif math_ == "ieee":
                    ax.plot(part["block"], part["us/token"], color=RULE, lw=0.9, zorder=1)
        ax.axhline(copy, color=INK, lw=1, ls=(0, (2, 2)), zorder=2)
        ax.set_title(name)
        log_ticks(ax.xaxis, curves["block"], base=2)
        ax.tick_params(axis="x", labelsize=7, labelbottom=True)
    log_ticks(axes[0, 0].yaxis, [copy, *curves["us/token"]])
    return label_grid(figure, axes, len(names), "threads a block",
                      "µs/token, log scale; dashed: the copy")


@styled
def complexity(ladder, kernels):
    """Times V1 at block 32 over lines of code; kernels as update_ladder.kernels gives."""
    figure, axes = grid(1, 1, 3.6)
    ax, foot, looks = axes[0, 0], results.baseline(ladder, 32), look(flavours(ladder))
    gains = []
    for math_ in looks:
        best = results.best(ladder, math_)
        known = [name for name in best.index if name in kernels]
        xs = [kernels[name]["lines"] for name in known]
        ys = [foot / best.loc[name, "us/token"] for name in known]
        gains += ys
        ax.scatter(xs, ys, s=34, color=looks[math_]["color"], label=math_, zorder=3)
        if math_ == "ieee":
            for x, y, name in zip(xs, ys, known):
                ax.annotate(name, (x, y), (6, -3), textcoords="offset points", weight="bold")
    log_ticks(ax.yaxis, gains)
    ax.set_xlim(0, 1.06 * max(xs))
    ax.set_xlabel("lines of code of the kernel's file")
    ax.set_ylabel("times V1 at block 32 in ieee, log scale")
    ax.legend(loc="lower right")
    return figure


@styled
def winners(parts):
    """Who is the fastest at which shape: a coloured tile a cell, with its %copy."""
    looks = look(versions(parts))
    shapes = [[1] if part["strip"] else sorted({cell["N"] for cell in part["cells"]})
              for part in parts]
    figure, axes = grid(len(parts), 1, sum(1.1 + 0.36 * len(ns) for ns in shapes),
                        height_ratios=[2 + len(ns) for ns in shapes])
    for ax, part, ns in zip(axes[:, 0], parts, shapes):
        cs = sorted({cell["C"] for cell in part["cells"]})
        for cell in part["cells"]:
            row = cell["ours"][0]
            x, y = cs.index(cell["C"]), 0 if part["strip"] else ns.index(cell["N"])
            ax.add_patch(matplotlib.patches.Rectangle(
                (x - 0.48, y - 0.45), 0.96, 0.9, alpha=0.3, color=looks[row["version"]]["color"]))
            text = row["version"] + ("" if math.isnan(row["%copy"]) else f"\n{row['%copy']:.0f} %")
            ax.text(x, y, text, ha="center", va="center", fontsize=7)
        ax.set_xlim(-0.5, len(cs) - 0.5)
        ax.set_ylim(len(ns) - 0.5, -0.5)
        ax.set_xticks(range(len(cs)), [plain(c) for c in cs], fontsize=7)
        ax.set_yticks(range(len(ns)), ["" if part["strip"] else f"{n}" for n in ns])
        ax.grid(visible=False)
        ax.tick_params(length=0)
        ax.set_xlabel("columns")
        ax.set_ylabel("" if part["strip"] else "rows")
        ax.set_title(atlas.title(part))
    return figure


@styled
def flushes(over):
    """{flush: {version: {bytes of input: µs more than in a graph}}}: a panel a version."""
    names = list(dict.fromkeys(name for versions in over.values() for name in versions))
    columns = min(2, len(names))
    lanes = -(-len(names) // columns)
    figure, axes = grid(lanes, columns, 0.4 + 2.2 * lanes, sharex=True, sharey=True)
    looks = look(over)
    for ax, name in zip(axes.flat, names):
        for way, versions in over.items():
            points = sorted(versions.get(name, {}).items())
            ax.plot([size / 2**20 for size, _ in points], [us for _, us in points], marker="o",
                    ms=3.5, lw=1.5, label=way, **looks[way])
        ax.axhline(0, color=INK, lw=1)
        ax.set_title(name)
    sizes = {size / 2**20 for each in over.values() for points in each.values() for size in points}
    log_ticks(axes[0, 0].xaxis, sizes, base=2)
    return label_grid(figure, axes, len(names), "MiB of input", "µs more than in a graph")
