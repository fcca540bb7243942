"""Helpers for tables: cells, alignment in terminals, Markdown, and the Wilcoxon test."""

from __future__ import annotations

from collections.abc import Sequence

from reproduce.experiment import Results, Table

ABSENT = "–"


def cell(value: float | None, form: str = "{:.2f}") -> str:
    """Format a number; None becomes a dash."""
    return ABSENT if value is None else form.format(value)


def mean_cell(results: Results, case: str, *path: str, form: str = "{:.2f}") -> str:
    """Format the mean over the seeds, with the standard deviation if there are several."""
    mean, sd = results.mean(case, *path), results.sd(case, *path)
    if mean is None or sd is None:
        return cell(mean, form)
    return f"{form.format(mean)} ± {form.format(sd)}"


def ratio(one: float | None, other: float | None) -> float | None:
    """Return a quotient, or None if an operand is missing or the divisor is 0."""
    return None if one is None or not other else one / other


def minus(one: float | None, other: float | None) -> float | None:
    """Return a difference, or None if an operand is missing."""
    return None if one is None or other is None else one - other


def lines(table: Table) -> list[str]:
    """Return a table for a terminal: the first column left-aligned, the others right-aligned."""
    cells = [list(table.header), *([str(one) for one in row] for row in table.rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(table.header))]
    text = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in cells
    ]
    title = [table.title, ""] if table.title else []
    return [*title, text[0], "  ".join("-" * width for width in widths), *text[1:]]


def markdown(table: Table) -> list[str]:
    """Return a table in Markdown, aligned as in a terminal."""

    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(str(one).replace('|', chr(92) + '|') for one in cells)} |"

    rule = ["---", *["---:"] * (len(table.header) - 1)]
    title = [f"**{table.title}**", ""] if table.title else []
    return [*title, row(table.header), row(rule), *map(row, table.rows)]


def wilcoxon(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the p-value of the two-sided Wilcoxon signed-rank test for paired values."""
    from scipy.stats import wilcoxon as test

    return float(test(ours, theirs).pvalue)
