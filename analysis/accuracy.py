"""How wrong each kernel and each peer is: results/accuracy/, which `accuracy` makes.

accuracy.ipynb draws it.
"""

import re

import matplotlib
import numpy as np
import pandas as pd

import figures
import results


def newest(top=None):
    """(file, context, frame) of a GPU's newest file, or of the CPU device's where there is none; of
    one day's two that in ieee."""
    every = [(file, results.parse(file)) for file in results.summaries("accuracy", top)]
    gpu = [one for one in every if one[1]["context"]["simulated"] == "false"]
    file, data = max(gpu or every, key=lambda one: (
        one[1]["context"]["date"][:10], one[1]["context"]["math"] == "ieee"))
    return file, data["context"], pd.DataFrame(data["accuracy"])


def order(name):
    """V1 to V12, Auto, then the peers."""
    number = re.fullmatch(r"V(\d+)", name)
    return (0, int(number[1]), "") if number else (1 if name == "Auto" else 2, 0, name)


def worst(frame, column):
    """The largest over all widths, implementations down and kinds of rows across."""
    table = frame.dropna(subset=[column]).pivot_table(column, "impl", "kind", "max", sort=False)
    return table.loc[sorted(table.index, key=order)]


def more_accurate(frame, ours="Auto"):
    """The rows in which a peer's largest error is smaller than that of `ours` by half and more."""
    own = frame[frame["impl"] == ours].set_index(["kind", "cols"])["max_ulp"].rename("ours")
    peers = frame[frame["of_bound"].isna()].join(own, on=["kind", "cols"])
    return peers[peers["max_ulp"] < peers["ours"] / 2][["impl", "kind", "cols", "max_ulp", "ours"]]


def _cells(ax, table, title, logarithmic):
    digits = 1 if logarithmic else 3
    values = np.log10(table.clip(lower=0.1)) if logarithmic else table
    colours = matplotlib.colors.LinearSegmentedColormap.from_list(
        "", [figures.PAPER, figures.SERIES[0]]
    )
    most = values.max().max() if logarithmic else 1
    ax.pcolormesh(values, cmap=colours, vmin=-1 if logarithmic else 0, vmax=most, lw=0)
    for y, row in enumerate(table.to_numpy()):
        for x, value in enumerate(row):
            dark = values.iat[y, x] > (0.7 * most)
            text = f"{value:.{digits if value < 99 else 0}f}" if value == value else ""
            style = {"ha": "center", "va": "center", "fontsize": 7}
            ax.text(x + 0.5, y + 0.5, text, color="white" if dark else figures.INK, **style)
    ax.set_xticks(np.arange(len(table.columns)) + 0.5, table.columns, rotation=40, ha="left")
    ax.xaxis.tick_top()
    ax.set_yticks(np.arange(len(table)) + 0.5, table.index)
    ax.invert_yaxis()
    ax.tick_params(length=0, labelsize=8)
    ax.grid(False)
    ax.set_title(title)


@figures.styled
def draw(frame, device):
    """The largest error in ulp of everyone; below it, of ours, the share of the proven bound."""
    ulps, shares = worst(frame, "max_ulp"), worst(frame, "of_bound")
    height = 0.23 * (len(ulps) + len(shares)) + 2
    figure, axes = figures.grid(2, 1, height, height_ratios=[len(ulps), len(shares)])
    _cells(axes[0, 0], ulps, f"{device}: largest error, ulp, over all widths", True)
    _cells(axes[1, 0], shares, "of ours: largest error over its proven bound", False)
    return figure
