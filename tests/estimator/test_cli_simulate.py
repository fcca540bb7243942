"""`simulate`: labels that strategies need, and refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from marginwise.cli import main
from marginwise.cli.replaying import Point, Replay, Rows, needed_of
from tests.support import runner

pytest.importorskip("pyarrow")
TOPICS = {"rare": ("whale", "dolphin", "reef"), "usual": ("train", "car", "bridge", "road")}


def call(*arguments: object) -> Result:
    return runner().invoke(main, [str(argument) for argument in arguments])


def report(*arguments: object) -> dict[str, Any]:
    result = call(*arguments, "--json", "-q")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*arguments: object, code: int = 1) -> str:
    result = call(*arguments)
    assert result.exit_code == code, result.output
    return result.stderr


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write texts of which one in ten is of the rare topic."""
    rng = np.random.RandomState(0)
    lines = ["text,label"]
    for k in range(300):
        label = "usual" if k % 10 else "rare"
        words = [*rng.choice(TOPICS[label], 2), *rng.choice(TOPICS["usual"], 2), f"n{k}"]
        lines.append(f"{' '.join(words)},{label}")
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_labels_to_an_error_of_each_strategy(texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "curve.csv"
    several = ("--strategy", "active", "--strategy", "random", "--seeds", "3")
    found = report("simulate", texts, "--target-error", "0.04", *several, "--out", out)
    assert found["items"] == 300
    active, random = found["strategies"]["active"], found["strategies"]["random"]
    assert active["reached"] == 3
    assert active["least"] <= active["median"] <= active["most"]
    assert random["median"] is None or active["median"] < random["median"]
    assert [run["seed"] for run in found["runs"]] == [0, 1, 2, 0, 1, 2]
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    last = {(row["strategy"], row["seed"]): row for row in rows}
    for run in found["runs"]:
        end = last[run["strategy"], str(run["seed"])]
        assert (float(end["error"]) <= 0.04) == (run["labels"] is not None)
        if run["labels"] is not None:
            assert int(end["labels"]) == run["labels"]
        assert end["recall"] == ""


def test_labels_to_a_recall(texts: Path) -> None:
    goal = ("--target-recall", "0.9", "--positive", "rare", "--seeds", "2")
    several = ("--strategy", "largest_positive", "--strategy", "random")
    found = report("simulate", texts, "--label", "label", *goal, *several)
    best, random = found["strategies"]["largest_positive"], found["strategies"]["random"]
    assert best["reached"] == random["reached"] == 2
    assert 27 <= best["median"] < 120 < random["median"]  # 27 of 30 must be found
    shown = call("simulate", texts, "--label", "label", *goal, "-q").stdout
    assert "labels to find 90% of the positive items, of 300:" in shown
    assert "largest_positive" in shown


def test_the_recall_is_counted_label_by_label() -> None:
    y = np.array([1, 0, 1, 1, 0, 0])
    rows = Rows(np.zeros((6, 1)), y, 1)
    pool = np.array([5, 0, 1, 2])  # two of them are positive
    assert rows.recall(pool, [0, 1, 3]).tolist() == [0.0, 0.5, 1.0]


def test_runs_that_fail_count_as_long_ones() -> None:
    end = [Point(50, 0.25, 0.5, 7)]
    replays = [Replay("active", 0, end, needed, "") for needed in (30, None, 10)]
    found = needed_of(replays)
    assert (found["median"], found["least"], found["most"]) == (30, 10, None)
    assert (found["error"], found["recall"]) == (0.25, 0.5)
    assert needed_of(replays[1:2])["median"] is None


def test_without_a_target_the_mean_curve_is_printed(texts: Path) -> None:
    shown = call("simulate", texts, "--max-labels", "60", "--seeds", "2", "-q").stdout
    assert shown.splitlines()[0].split() == ["labels", "error,", "active"]
    assert shown.splitlines()[-1].startswith("60 ")


def test_the_picture_is_a_png(texts: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "curve.png"
    report("simulate", texts, "--max-labels", "40", "--seeds", "1", "--picture", out)
    assert out.read_bytes().startswith(b"\x89PNG")
    error = refused("simulate", texts, "--max-labels", "40", "--picture", out)
    assert "curve.png exists and is kept" in error


def test_the_same_seed_gives_the_same_labels(texts: Path) -> None:
    arguments = ("simulate", texts, "--target-error", "0.05", "--seeds", "1", "--seed", "4")
    assert report(*arguments)["runs"] == report(*arguments, "--threads", "1")["runs"]


def test_active_and_simulate_are_one_replay(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 2))
    y = (X.sum(axis=1) > 0).astype(int)
    np.savez(tmp_path / "rows.npz", X=X.astype(np.float32), y=y)
    common = ("--max-labels", "50", "--step", "10", "-c", "10", "-g", "1")
    one = report("active", tmp_path / "rows.npz", *common, "--scale", "none")
    two = report("simulate", tmp_path / "rows.npz", *common, "--seeds", "1")
    short = [[labels, error, support] for labels, error, _, support in two["curves"]["active"]]
    assert short == one["curve"]


def test_all_rows_may_be_asked(tmp_path: Path) -> None:
    X = np.arange(40, dtype=np.float32)[:, None]
    np.savez(tmp_path / "rows.npz", X=X, y=(X[:, 0] > 30).astype(int))
    goal = ("--target-recall", "1", "--positive", "1", "--strategy", "random", "--seeds", "1")
    found = report("simulate", tmp_path / "rows.npz", *goal)
    assert found["strategies"]["random"]["reached"] == 1
    assert found["runs"][0]["labels"] <= 40


WRONG = {
    ("--label", "tag"): "column 'tag' is missing",
    ("--target-recall", "0.9", "--positive", "odd"): "no item has the label 'odd' of --positive; "
    "the labels are rare, usual",
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_names_are_refused_with_those_that_exist(
    texts: Path, options: tuple[str, ...]
) -> None:
    assert WRONG[options] in refused("simulate", texts, *options)


@pytest.mark.parametrize(
    "options",
    [
        ("--target-recall", "0.9"),
        ("--positive", "rare"),
        ("--target-recall", "0.9", "--positive", "rare", "--target-error", "0.1"),
        ("--target-recall", "0", "--positive", "rare"),
    ],
)
def test_options_that_do_not_go_together_are_refused(texts: Path, options: tuple[str, ...]) -> None:
    refused("simulate", texts, *options, code=2)


def test_files_without_rows_or_labels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    cases = {
        "text,label\n": "rows",
        "text,label\none two,a\nthree four,\n": "1 of 2 items have no label, the first of them in "
        "row 2; expected a label for each",
        "text,label\none two,a\nthree four,a\n": "all rows have the label a; expected at least two",
    }
    for text, expected in cases.items():
        path.write_text(text)
        assert expected in refused("simulate", path)
    assert "none.csv" in refused("simulate", tmp_path / "none.csv")
