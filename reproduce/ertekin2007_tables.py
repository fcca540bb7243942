"""Tables 1, 3 and 4 of [ertekin2007]: our figures, with the paper's in brackets."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence
from typing import Any

from common import table
from ertekin2007_paper import METHODS, TABLE1, TABLE3, TABLE4_AVERAGES
from ertekin2007_sets import SETS

Measurements = dict[str, list[dict[str, Any]]]  # of one set, by method, one a seed

# The columns of the paper: heading, method, measurement, form.
COLUMNS1 = (
    ("g, Batch", "Batch", "g_mean", "{:.2f}"),
    ("g, AL", "AL", "g_mean", "{:.2f}"),
    ("AUC, Batch", "Batch", "auc", "{:.2f}"),
    ("AUC, AL", "AL", "auc", "{:.2f}"),
    ("rows -/+", "AL", "imbalance", "{:.1f}"),
    ("SV-/SV+", "AL", "ratio", "{:.2f}"),
    ("learned", "AL", "efficiency", "{:.1f}"),
)
COLUMNS3 = (
    *((method, method, "prbep", "{:.2f}") for method in METHODS),
    ("SMOTE, s", "SMOTE", "seconds", "{:,.2f}"),
    ("AL, s", "AL", "seconds", "{:,.2f}"),
)


def tables(sets: dict[str, Measurements]) -> str:
    """Return the three tables of the sets that were measured, and why they depart."""
    parts = [
        "Table 1. g-means and AUC of Batch and AL, in %; negatives for each positive, of the rows\n"
        "and of the support vectors of AL; rows that AL learned, in %. The paper's in brackets.",
        _figures(sets, COLUMNS1, TABLE1),
        "Table 3. PRBEP in %, and seconds of training, on machines that do not compare.",
        _figures(sets, COLUMNS3, TABLE3),
        "Table 4. Ranks by PRBEP.",
        _ranks(sets),
        "Departures.",
        _departures(list(sets)),
    ]
    return "\n\n".join(parts)


def ranks(values: Sequence[float]) -> list[int]:
    """Rank from the highest value, as printed, down; equal ones share the better rank."""
    printed = [round(value, 2) for value in values]
    return [1 + sum(other > value for other in printed) for value in printed]


def mean(measurements: Measurements, method: str, name: str) -> float:
    return statistics.fmean(m[name] for m in measurements[method])


def _beside(form: str, ours: float, paper: float) -> str:
    """Show both in one form, but for what the paper gives in whole numbers."""
    whole = f"{paper:,}" if isinstance(paper, int) else form.format(paper)
    return f"{form.format(ours)} ({whole})"


def _figures(sets: dict[str, Measurements], columns: Any, paper: Any) -> str:
    """Tabulate means over the seeds beside a table of the paper."""
    rows = []
    for name, ours in sets.items():
        cells = [
            _beside(form, mean(ours, method, what), figure)
            for (_, method, what, form), figure in zip(columns, paper[name], strict=True)
        ]
        rows.append([name, *cells, str(len(ours["AL"]))])
    return table(("", *(column[0] for column in columns), "seeds"), rows)


def _ranks(sets: dict[str, Measurements]) -> str:
    ours = [ranks([mean(one, method, "prbep") for method in METHODS]) for one in sets.values()]
    paper = [ranks(TABLE3[name][: len(METHODS)]) for name in sets]
    rows = [
        [name, *(_beside("{}", *pair) for pair in zip(*both, strict=True))]
        for name, *both in zip(sets, ours, paper, strict=True)
    ]
    averages = (map(statistics.fmean, zip(*given, strict=True)) for given in (ours, paper))
    rows.append(["average", *(_beside("{:.2f}", *pair) for pair in zip(*averages, strict=True))])
    rows.append(["the paper's 18 sets", *(f"({rank:.2f})" for rank in TABLE4_AVERAGES)])
    return table(("", *METHODS), rows)


def _departures(names: list[str]) -> str:
    reasons = dict.fromkeys(SETS[name].departs for name in names)
    lines = [
        f"{', '.join(name for name in names if SETS[name].departs == reason)}: {reason}"
        for reason in filter(None, reasons)
    ]
    return "\n".join(textwrap.fill(line, 100, subsequent_indent="  ") for line in lines) or "None."
