"""Files that commands of older versions wrote: models of `train`, and stores of `label`."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise import OnlineSVC
from marginwise.cli import main
from marginwise.label import LabelStore
from marginwise.label.item_files import Columns
from marginwise.label.queue import Settings
from marginwise.label.schema import VERSION
from marginwise.label.start import Request, start
from tests.golden.make_files import FILES, LABELS, described
from tests.support import runner

pytest.importorskip("pyarrow", reason="tables are read with pyarrow")

MODELS = sorted(FILES.glob("*_sklearn_*.json"))
STORES = sorted(FILES.glob("labels-v*.json"))


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def done(*words: object) -> str:
    result = runner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def labels_and_scores(lines: list[str]) -> tuple[list[str], np.ndarray]:
    head, *rows = csv.reader(lines)
    assert head == ["label", "score"]
    return [row[0] for row in rows], np.array([float(row[1]) for row in rows])


@pytest.mark.parametrize("expected", MODELS, ids=lambda path: path.stem)
def test_a_model_of_train_predicts_as_when_it_was_written(expected: Path) -> None:
    golden = read(expected)
    model, data = expected.with_suffix(".mwz"), FILES / golden["data"]
    printed = done("predict", model, data, "-q", "--scores", *golden["options"])
    labels, scores = labels_and_scores(printed.splitlines())
    wanted, values = labels_and_scores(golden["predicted"])
    assert labels == wanted
    np.testing.assert_allclose(scores, values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("expected", MODELS, ids=lambda path: path.stem)
def test_a_model_of_train_can_be_continued(expected: Path, tmp_path: Path) -> None:
    golden = read(expected)
    model, again = expected.with_suffix(".mwz"), tmp_path / "again.mwz"
    data = FILES / golden["data"]
    done("continue", model, data, again, "-q", *golden["options"])
    printed = done("predict", again, data, "-q", "--scores", *golden["options"])
    assert len(printed.splitlines()) == len(golden["predicted"])


@pytest.mark.parametrize("expected", STORES, ids=lambda path: path.stem)
def test_a_store_of_label_is_read_continued_and_trained(expected: Path, tmp_path: Path) -> None:
    golden, path = read(expected), tmp_path / "labels.db"
    shutil.copyfile(expected.with_suffix(".db"), path)
    assert described(path) == golden
    request = Request(str(FILES / "texts.csv"), Columns(text=("text",)), store=str(path))
    settings = Settings((), annotator="ann", holdout=0.2, overlap=0.1)
    session, _ = start(request, settings, None, lambda *_: OnlineSVC(C=10, gamma=1.0))
    assert session.settings.labels == tuple(LABELS)
    answered = {item for item, *_ in golden["answers"]}
    asked = [item["id"] for item in session.state()["queue"]]
    assert len(asked) == 3
    session.answer("new", asked[0], LABELS[0])
    session.close()
    with LabelStore.open(path, readonly=True) as store:
        (event,) = [event for event in store.events() if event.key == "new"]
    assert event.seq == golden["events"] + 1
    assert asked[0] not in answered or event.purpose == "overlap"
    report = json.loads(
        done("train", path, tmp_path / "m.mwz", "--items", FILES / "texts.csv", "-q", "--json")
    )
    assert report["classes"] == sorted(LABELS)


def test_there_is_a_file_of_each_kind_and_version() -> None:
    """Run tests/golden/make_files.py after a format has changed."""
    names = {path.stem.partition("_")[0].partition("-")[0] for path in MODELS}
    assert names == {"table", "texts", "rows", "store"}
    assert {path.stem for path in STORES} == {f"labels-v{k}" for k in range(1, VERSION + 1)}
