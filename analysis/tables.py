"""What the scripts that keep a table in a document share: markdown, markers, --check."""

import sys

import results

DASH = "–"


def table(header, rows, left=2, text=0, pad=False):
    """Markdown; the first `left` columns and the last `text` are text, the rest numbers.

    `pad` fills the cells, so that it reads in a terminal too.
    """
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in [header, *rows]]
    numbers = range(left, len(header) - text)
    rule = ["---:" if i in numbers else "---" for i in range(len(header))]
    lines = [cells[0], rule, *cells[1:]]
    if pad:
        at = range(len(header))
        widths = [max(len(line[i]) for line in lines) for i in at]
        rule[:] = ["-" * (w - (i in numbers)) + ":" * (i in numbers) for i, w in zip(at, widths)]
        lines = [
            [cell.rjust(w) if i in numbers else cell.ljust(w)
             for i, cell, w in zip(at, line, widths)]
            for line in lines
        ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def between(text, marker, body, file):
    """The text with body between the markers; ResultsError unless they stand there, once each."""
    start, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    if text.count(start) != 1 or text.count(end) != 1 or text.index(start) > text.index(end):
        raise results.ResultsError(
            f"{results.relative(file)}: want {start} and {end}, once each and in this order"
        )
    head, rest = text.split(start)
    return f"{head}{start}\n{body}\n{end}{rest.split(end)[1]}"


def newest(name, top=None):
    """The newest <gpu>/<date>-<sha>/<name> by its folder's date; ResultsError if there is none.

    Of files without a date inside; results.latest reads the dates of those that have one.
    """
    top = top or results.results_folder()
    found = sorted(top.glob(f"*/*/{name}"), key=lambda file: file.parent.name)
    if not found:
        raise results.ResultsError(f"{results.relative(top)}: no <gpu>/<date>-<sha>/{name} in it")
    return found[-1]


def update(script, wanted, check):
    """Writes {path: text} that `wanted()` gives, or with `check` says which are out of date.

    script: the command that writes them, as in "update_ladder.py". Gives the exit status of its
    main: 1 if something is out of date, 2 if `wanted` has nothing to write from or into.
    """
    try:
        texts = wanted()
        stale = [path for path, text in texts.items() if path.read_text(encoding="utf-8") != text]
    except (results.ResultsError, OSError) as error:
        print(f"{script.split('.')[0]}: {error}", file=sys.stderr)
        return 2
    for path in stale:
        if check:
            print(f"{results.relative(path)}: out of date, run python analysis/{script}")
        else:
            path.write_text(texts[path], encoding="utf-8")
            print(f"{results.relative(path)}: written")
    return 1 if check and stale else 0
