"""The pages are true: links lead somewhere, code runs, and what exists is described."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import io
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
)
from marginwise._training.runs import Moment
from marginwise._training.sift import Tally
from marginwise.active import STRATEGIES, ActiveLearner, StoppingRule
from marginwise.active.stopping import RULES
from marginwise.cli import virtual
from marginwise.invariance import ImageDeformer, VirtualSet

ROOT = Path(__file__).parents[2]
ONLINE = ROOT / "docs" / "algorithms" / "online.md"
ACTIVE = ROOT / "docs" / "guide" / "active.md"
INVARIANCE = ROOT / "docs" / "guide" / "invariance.md"
CORE = ROOT / "cpp" / "include" / "marginwise"
DEFORM = CORE / "images" / "deform.hpp"
ESTIMATORS = {
    "online": OnlineSVC,
    "gap": GapSVC,
    "tracking": TrackingSVC,
    "exact": ExactSVC,
    "exact_ramp": ExactRampSVC,
    "one_class": ExactOneClassSVM,
    "perceptron": KernelPerceptron,
}
# The headers whose departures a page explains. Other pages have a header of their own name.
# The departures of the sphere are in exact.hpp, and so on the page of ExactSVC.
EXPLAINS = {
    "online": [CORE / "algo" / "lasvm.hpp", CORE / "model" / "selection.hpp"],
    "exact": [CORE / "algo" / "exact" / "exact.hpp"],
    "one_class": [],
}
BIASED = ("exact", "one_class")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HOUSE = re.compile(r"`((?:cpp|src|tests|benchmarks|examples|docs)/[\w./-]*)`")
# What a block of code that has these words needs; without it the block is left out.
LIBRARIES = {
    "Display": "matplotlib",
    "PIL": "PIL",
    "contact_sheet": "matplotlib",
    "dask": "distributed",
    "Dask": "distributed",
    "client.close": "distributed",
    "rounds_": "distributed",
    "predict_files": "marginwise.dask.scoring",
    "imblearn": "imblearn",
    "marginwise.active.plot": "matplotlib",
    "skactiveml": "skactiveml",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "pandas": "pandas",
    "skl2onnx": "skl2onnx",
    "skops": "skops",
}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return what links to the headings of a page end in."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in headings}


def algorithm_page(name: str) -> Path:
    return ROOT / "docs" / "algorithms" / f"{name}.md"


def headers(name: str) -> list[Path]:
    return EXPLAINS.get(name, [CORE / "algo" / f"{name}.hpp"])


def parameter_table(name: str) -> dict[str, object]:
    """Return the defaults of the parameters that the page of an algorithm describes."""
    return described(section("Parameters", algorithm_page(name)))


def described(text: str) -> dict[str, object]:
    """Return the defaults that the tables of a text tell."""
    rows = re.findall(r"^\| `(\w+)` \| `([^`]*)` \| (\S[^|]*) \|", text, re.M)
    return {parameter: ast.literal_eval(default) for parameter, default, _ in rows}


def defaults(thing: Any) -> dict[str, object]:
    signature = inspect.signature(thing).parameters.values()
    return {parameter.name: parameter.default for parameter in signature}


def choices(thing: Any) -> dict[str, object]:
    """Return the defaults of the parameters that have one."""
    missing = inspect.Parameter.empty
    return {name: value for name, value in defaults(thing).items() if value is not missing}


def section(title: str, page: Path = ONLINE) -> str:
    """Return a section of a page, by default that of OnlineSVC, up to the next of its level."""
    _, _, rest = page.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def lacks_a_library(code: str) -> bool:
    """Tell whether a block of code needs a library that is not installed."""
    needed = [library for word, library in LIBRARIES.items() if word in code]
    return any(importlib.util.find_spec(library) is None for library in needed)


# -- links and code ------------------------------------------------------------------------------


@each_page
def test_links_resolve(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{link}: {target.name} has no such heading"


@each_page
def test_files_that_are_named_exist(page: Path) -> None:
    missing = [path for path in HOUSE.findall(prose(page)) if not (ROOT / path).exists()]
    assert not missing


@each_page
def test_papers_that_are_cited_are_in_the_bibliography(page: Path) -> None:
    known = re.findall(r"^@\w+\{(\w+),", (ROOT / "references.bib").read_text(), re.MULTILINE)
    cited = re.findall(r"\[([a-z]+\d{4})\b", prose(page))
    assert set(cited) <= set(known)


@each_page
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is one program; a block of text after one of code is what the code prints."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace: dict[str, object] = {"__name__": page.stem}
    for (language, code), (next_language, text) in pairwise([*blocks, ("", "")]):
        if language != "python" or lacks_a_library(code):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), namespace)
        if next_language == "text":
            assert printed.getvalue() == text


# -- README --------------------------------------------------------------------------------------


def test_readme_shows_the_two_commands() -> None:
    commands = [code for _, code in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))]
    for command in ("make demo", "make test", "pip install ."):
        assert any(re.search(rf"^{command}", code, re.MULTILINE) for code in commands), command


def test_readme_has_an_example_of_five_lines() -> None:
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    first = next(code for language, code in blocks if language == "python")
    assert len([line for line in first.splitlines() if line.strip()]) == 5


def test_pictures_are_small() -> None:
    pictures = [path for path in (ROOT / "docs" / "images").iterdir() if path.is_file()]
    assert all(path.stat().st_size < 150_000 for path in pictures)


# -- the page of OnlineSVC -----------------------------------------------------------------------


def test_every_parameter_is_described_with_its_default() -> None:
    assert parameter_table("online") == defaults(OnlineSVC)


def test_every_statistic_is_described() -> None:
    names = re.findall(
        r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", section("Counters in `stats_`"), re.M))
    )
    model = OnlineSVC(gamma=1.0).partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1])
    assert set(names) == model.stats_.keys()


def test_parameters_of_learn_from_are_described_with_their_defaults() -> None:
    _, _, text = section("Choosing rows").partition("\n### From a source\n")
    assert described(text) == choices(OnlineSVC.learn_from)


# -- the pages of all algorithms -----------------------------------------------------------------


def test_every_algorithm_has_a_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "algorithms").iterdir()}
    assert pages == {"index", *ESTIMATORS}
    explained = {path for name in ESTIMATORS for path in headers(name)} | {DEFORM}
    assert {path for path in CORE.rglob("*.hpp") if "DEPARTS:" in path.read_text()} == explained


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_departure_is_explained(name: str) -> None:
    departures = sum(path.read_text().count("DEPARTS:") for path in headers(name))
    text = section("Where we depart from the paper", algorithm_page(name))
    numbers = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
    assert numbers == [str(k + 1) for k in range(departures)]


def test_departures_of_deforming_are_explained() -> None:
    text = section("What the paper does and we do otherwise", INVARIANCE)
    numbers = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
    assert numbers == [str(k + 1) for k in range(len(numbers))]
    for word in ("One strength", "range of the image", "No shift is one of the shifts"):
        assert word in text
    assert DEFORM.read_text().count("DEPARTS:") == 3


@pytest.mark.parametrize("step", ["process", "reprocess"])
@pytest.mark.parametrize("name", ["online", "gap"])
def test_steps_are_numbered_as_in_the_code(name: str, step: str) -> None:
    code = headers(name)[0].read_text()
    body = re.search(rf"^(?:bool|void) \w+<T>::{step}\(.*?^\}}", code, re.M | re.S)
    assert body is not None
    numbers = re.findall(r"// (\d)\b", body[0])
    assert len(numbers) >= 3
    blocks = "\n".join(text for _, text in BLOCK.findall(algorithm_page(name).read_text("utf-8")))
    steps = re.search(rf"^{step.upper()}\b.*?(?=^[A-Z]|\Z)", blocks, re.M | re.S)
    assert steps is not None
    assert re.findall(r"^(\d) ", steps[0], re.MULTILINE) == numbers


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_that_others_lack_are_described_with_their_defaults(name: str) -> None:
    told, actual = parameter_table(name), defaults(ESTIMATORS[name])
    assert told == {parameter: actual[parameter] for parameter in told}
    assert actual.keys() - defaults(OnlineSVC).keys() <= told.keys()


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "online"])
def test_pages_of_algorithms_tell_the_same_things(name: str) -> None:
    titles = re.findall(r"^## (.+)$", prose(algorithm_page(name)), re.MULTILINE)
    assert titles == [
        "When to use it",
        "What it does",
        "Where we depart from the paper",
        "Cost",
        "What it gives up",
        "Bias" if name in BIASED else "No bias",
        "Parameters",
        "An example",
        "References",
    ]


@pytest.mark.parametrize(
    ("page", "folder"),
    [
        ("docs/guide/choosing.md", "../algorithms/"),
        ("docs/algorithms/index.md", ""),
    ],
)
def test_every_estimator_is_offered(page: str, folder: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, estimator in ESTIMATORS.items():
        assert estimator.__name__ in text
        assert f"]({folder}{name}.md" in text


# -- the page of active learning -----------------------------------------------------------------


def test_first_example_is_short() -> None:
    language, code = BLOCK.findall(section("A first example", ACTIVE))[0]
    assert language == "python"
    assert len([line for line in code.splitlines() if line.strip()]) == 10


def test_every_strategy_is_described() -> None:
    rows = re.findall(r'^\| `"(\w+)"` \|', section("Which row is asked about", ACTIVE), re.M)
    assert sorted(rows) == sorted(STRATEGIES)


def test_every_stopping_rule_is_described_with_its_defaults() -> None:
    text = section("When to stop", ACTIVE)
    rows = [row for row in text.splitlines() if row.startswith("|")]
    for name, rule in RULES.items():
        assert issubclass(rule, StoppingRule)
        (row,) = [row for row in rows if f"{name}(" in row]
        given = re.search(rf"{name}\((.*?)\)`", row)
        assert given is not None
        for option in re.findall(r"(\w+)=([\d.]+)", given[1]):
            assert inspect.signature(rule).parameters[option[0]].default == float(option[1])


def test_every_attribute_of_a_learner_is_described() -> None:
    text = ACTIVE.read_text(encoding="utf-8")
    names = [name for name in dir(ActiveLearner) if not name.startswith("_")]
    missing = [
        name
        for name in [*names, "history_", "support_counts_"]
        if not re.search(rf"\b{name}\b", text)
    ]
    assert not missing


def test_every_parameter_of_a_learner_is_mentioned() -> None:
    text = ACTIVE.read_text(encoding="utf-8")
    names = set(inspect.signature(ActiveLearner).parameters) - {"estimator", "X_pool", "verbose"}
    assert not [name for name in names if not re.search(rf"\b{name}\b", text)]


# -- the page of invariance ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "thing"), [("What a variant is", ImageDeformer), ("The virtual set", VirtualSet)]
)
def test_parameters_of_images_are_described_with_their_defaults(title: str, thing: type) -> None:
    assert described(section(title, INVARIANCE)) == choices(thing)


def test_every_option_of_the_command_is_described_with_its_default() -> None:
    told: dict[str, str] = {}
    text = section("Look before you learn", INVARIANCE)
    for options, values in re.findall(r"^\| (`--.*?) \| (.*?) ?\|", text, re.M):
        told.update(zip(re.findall(r"`--(\w+)`", options), values.split(", "), strict=True))
    _, shape, *others = virtual.params
    actual = {
        option.opts[0].lstrip("-"): str(option.default).removesuffix(".0") for option in others
    }
    assert told == {str(shape.name): "", **actual}


def test_all_that_a_callback_is_told_is_described() -> None:
    text = section("Watching a run", INVARIANCE)
    names = [item.name for kind in (Moment, Tally) for item in fields(kind)]
    assert not [name for name in [*names, "lost"] if f"`{name}`" not in text]
