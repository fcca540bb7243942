"""Write docs/results and its pictures from the stored results.

python -m reproduce.pages                  docs/results, docs/images/results
python -m reproduce.pages --docs FOLDER    elsewhere
"""

from __future__ import annotations

import argparse
import importlib
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reproduce import registry
from reproduce.experiment import CONFIRMED, NOT_CONFIRMED, NOT_TESTABLE, Claim, Results, Table
from reproduce.rows import markdown
from reproduce.runner import INSTALL
from reproduce.single_page import single_page
from reproduce.store import REPOSITORY, DamagedResultsError, Store, path_of

NOTICE = "<!-- Written by `python -m reproduce.pages` from the stored results; do not edit. -->"
VERDICTS = (CONFIRMED, NOT_CONFIRMED, NOT_TESTABLE)
INTRODUCTION = """\
The algorithms of marginwise come from seven papers.
We repeated the tables and figures that the available data allow, and judged each claim of the \
papers: **confirmed**, **not confirmed** or **not testable here**.
The pages of the papers show our measurements next to the printed figures.

From a clone of the repository, one command repeats an experiment:

```bash
marginwise reproduce                       # list the experiments
marginwise reproduce bordes2005/figure10   # run one
```

Names such as bordes2005 are the keys of the papers in `references.bib`."""
REPORT = "report.html"
DOWNLOAD = f"[One HTML file]({REPORT}) has all results and opens without a network."


def of_paper(paper: str) -> list[str]:
    """Return the names of a paper's experiments."""
    return [name for name in registry.names() if name.startswith(f"{paper}/")]


def results_of(name: str) -> Results:
    """Return the stored results that an experiment shows."""
    return Store(path_of(registry.measured(name), quick=False)).results()


def claims_of(paper: str) -> list[Claim]:
    """Return all claims of a paper: those of its experiments, then those of its claims.py."""
    found = [
        one for name in of_paper(paper) for one in registry.load(name).claims(results_of(name))
    ]
    if find_spec(f"reproduce.{paper}.claims") is None:
        return found
    return [*found, *importlib.import_module(f"reproduce.{paper}.claims").CLAIMS]


def picture(name: str) -> str:
    """Return the file name of an experiment's picture."""
    return f"{name.replace('/', '-')}.png"


# -- pages ---------------------------------------------------------------------------------------


def verdict_table(claims: list[Claim]) -> Table:
    """Return one row per claim."""
    rows = [
        [
            f"{one.claim} ({one.place})",
            f"**{one.verdict}**",
            one.theirs,
            one.ours,
            one.reason or "–",
        ]
        for one in claims
    ]
    return Table(["claim", "verdict", "paper", "here", "likely reason"], rows)


def left(table: list[str]) -> list[str]:
    """Left-align all columns of a table of text."""
    return [line.replace("---:", "---") if line.startswith("| ---") else line for line in table]


def circumstances(name: str) -> str:
    """Return date, machine and versions of the last measurement of an experiment."""
    content = Store(path_of(registry.measured(name), quick=False)).content
    numbers = {run["made"] for case in content["cases"].values() for run in case["runs"].values()}
    made = [content["made"][number] for number in sorted(numbers)]
    if not made:
        return ""
    names = ("cpu", "marginwise", "scikit-learn", "numpy")
    dates, machine, own, peer, numpy = (listed(made, field) for field in ("date", *names))
    return (
        f"Measured on {dates}, on {machine}, with marginwise {own}, scikit-learn {peer} and NumPy "
        f"{numpy}; on one thread unless the text says otherwise."
    )


def listed(made: list[dict[str, Any]], field: str) -> str:
    """Return the distinct values of a field, in words."""
    *others, last = sorted({str(one[field]) for one in made if field in one}) or ["unknown"]
    return f"{', '.join(others)} and {last}" if others else last


def section(name: str) -> list[str]:
    """Return the section of one experiment."""
    experiment, results = registry.load(name), results_of(name)
    text = [f"## {experiment.what}: {experiment.title}", "", experiment.text, ""]
    if not results:
        text += ["Not measured yet.", ""]
    elif experiment.draw is not None:
        words = f"{experiment.what} of {experiment.paper}: {experiment.title}"
        text += [f"![{words}](../images/results/{picture(name)})", ""]
    for table in experiment.tables(results) if results else []:
        text += [*markdown(table), ""]
    text += ["Regenerate it:", "", "```bash", f"marginwise reproduce {name}", "```", ""]
    made = circumstances(name)
    return [*text, *([made, ""] if made else [])]


def paper_page(paper: str) -> str:
    """Return the page of a paper."""
    described, claims = registry.paper(paper), claims_of(paper)
    text = [f"# {paper}: {described.title}", "", NOTICE, ""]
    text += [described.citation, "", described.summary, ""]
    if claims:
        text += ["## Verdicts", "", *left(markdown(verdict_table(claims))), ""]
    for name in of_paper(paper):
        text += section(name)
    return "\n".join(text).rstrip() + "\n"


def index_page() -> str:
    """Return the page of all verdicts."""
    claims = {paper: claims_of(paper) for paper in registry.papers()}
    text = ["# Results", "", NOTICE, "", INTRODUCTION, "", DOWNLOAD, ""]
    rows = []
    for paper, found in claims.items():
        counts = Counter(one.verdict for one in found)
        total = [str(counts[verdict]) for verdict in VERDICTS]
        link = f"[{registry.paper(paper).title}]({paper}.md) [{paper}]"
        rows.append([link, str(len(of_paper(paper))), *total])
    sums = [str(sum(int(row[k]) for row in rows)) for k in range(1, 5)]
    rows.append(["all", *sums])
    text += [*markdown(Table(["paper", "experiments", *VERDICTS], rows)), ""]
    for paper, found in claims.items():
        described = registry.paper(paper)
        text += [f"## {paper}: {described.title}", "", described.citation, ""]
        text += [*left(markdown(verdict_table(found))), ""] if found else []
    text += [":::{toctree}", ":maxdepth: 1", ":hidden:", "", *claims, ":::"]
    return "\n".join(text) + "\n"


def pages() -> dict[str, str]:
    """Return the text of all pages by file name."""
    return {"index.md": index_page(), **{f"{key}.md": paper_page(key) for key in registry.papers()}}


def report(texts: dict[str, str], folder: Path) -> str:
    """Return all pages as one HTML file; links to pictures are relative to `folder`."""
    return single_page({**texts, "index.md": texts["index.md"].replace(DOWNLOAD, "")}, folder)


def draw_all(folder: Path, names: list[str]) -> None:
    """Draw the pictures of experiments that have results."""
    from reproduce.drawing import save

    for name in names:
        experiment, results = registry.load(name), results_of(name)
        if experiment.draw is not None and results:
            save(experiment, results, folder / picture(name))


def main(given: list[str] | None = None) -> int:
    """Write the pages, the pictures and the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs", help="folder of the site")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="draw only the pictures of these")
    options = parser.parse_args(given)
    if find_spec("matplotlib") is None:
        parser.error(f"the pictures need matplotlib: {INSTALL}")
    try:
        drawn = registry.select(options.only or ["all"])
        texts = pages()
    except (LookupError, DamagedResultsError) as problem:
        parser.error(str(problem.args[0]))
    try:
        (options.docs / "results").mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        parser.error(f"--docs {options.docs} cannot be written: {problem}.")
    draw_all(options.docs / "images" / "results", drawn)
    for name, text in texts.items():
        path = options.docs / "results" / name
        path.write_text(text, encoding="utf-8")
    html = options.docs / "results" / REPORT
    html.write_text(report(texts, html.parent), encoding="utf-8")
    print(f"written to {options.docs / 'results'}, report {html.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
