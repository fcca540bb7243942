"""`labels export`, `import` and `info`, and `train` on a store: files in, files out, refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from marginwise import load
from marginwise.active.recall import binomial_bounds
from marginwise.cli import main
from marginwise.label import Answers, Event, LabelStore
from marginwise.label.item_files import Columns, open_items
from marginwise.label.reopening import Request, item_set, remember
from tests.support import runner

pytest.importorskip("pyarrow")
GOOD, BAD = ("splendid", "lovely", "bright"), ("dreadful", "grim", "awful")


def call(*arguments: object, text: str | None = None) -> Result:
    return runner().invoke(main, [str(argument) for argument in arguments], input=text)


def done(*arguments: object) -> Result:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments: object, code: int = 1) -> str:
    """Run a command that must end with an error; return the error."""
    result = call(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    return result.stderr


def write_reviews(path: Path, rows: int = 60) -> list[str]:
    """Write a table of texts; return their labels."""
    rng = np.random.RandomState(0)
    labels = [("good", "bad")[k % 2] for k in range(rows)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "abstract", "stars"])
        for k, label in enumerate(labels):
            words = rng.choice(GOOD if label == "good" else BAD, 2)
            writer.writerow([f"Film {k}", f"It was {words[0]} and {words[1]} on day {k}", k % 5])
    return labels


def write_store(folder: Path, labelled: int = 40, columns: Columns | None = None) -> Path:
    """Write reviews, and a store with labels of some of them."""
    labels = write_reviews(folder / "reviews.csv")
    request = Request(str(folder / "reviews.csv"), columns or Columns())
    items = open_items(request.items, request.columns)
    with LabelStore.open(folder / "labels.db", items=item_set(items)) as store:
        remember(store, request)
        store.set_meta(labels='["good", "bad"]', goal='"learn"')
        for k in range(labelled):
            give(store, items.ids[k], labels[k], "ann", k)
        give(store, items.ids[0], "bad", "bob", labelled)
        give(store, items.ids[1], "bad", "bob", labelled + 5)
        for kind, text in {"flag": "on", "note": "odd, very"}.items():
            store.append(Event(kind=kind, item=items.ids[2], annotator="bob", text=text, time=50.0))
        store.append(Event(kind="skip", item=items.ids[50], annotator="bob", time=51.0))
    return folder / "labels.db"


def give(store: LabelStore, item: str, label: str, who: str, k: int) -> None:
    more: dict[str, Any] = {"time": 1e9 + 10 * k, "duration": 2.0}
    store.append(Event(kind="label", item=item, label=label, annotator=who, **more))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return write_store(tmp_path)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# -- export ----------------------------------------------------------------------------------------


def test_export_writes_the_most_recent_answer_of_each_item(store: Path) -> None:
    out = store.with_name("labels.csv")
    assert "41 records, format csv" in done("labels", "export", store, out).stdout
    rows = rows_of(out)
    assert len(rows) == 41
    assert (rows[0]["label"], rows[0]["annotator"]) == ("bad", "bob")  # bob's is more recent
    assert rows[0]["time"] == "2001-09-09T01:53:20.000000Z"
    assert (rows[2]["flagged"], rows[2]["note"]) == ("true", "odd, very")
    assert (rows[40]["kind"], rows[40]["label"]) == ("skip", "")


def test_export_of_one_annotator_and_of_each(store: Path) -> None:
    out = store.with_name("labels.jsonl")
    done("labels", "export", store, out, "--annotator", "ann")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 40
    assert {row["annotator"] for row in rows} == {"ann"}
    done("labels", "export", store, out, "--each", "--force")
    assert len(out.read_text().splitlines()) == 44
    error = refused("labels", "export", store, out, "--annotator", "eve", "--force")
    assert "there is no annotator 'eve'; the store has ann, bob" in error


def test_export_adds_the_columns_of_the_items(store: Path) -> None:
    out = store.with_name("labels.csv")
    done("labels", "export", store, out, "--items", store.with_name("reviews.csv"))
    assert rows_of(out)[3]["title"] == "Film 3"
    done("labels", "export", store, store.with_name("tasks.json"))
    tasks = json.loads(store.with_name("tasks.json").read_text())
    assert tasks[0]["data"]["title"] == "Film 0"
    assert [made["result"][0]["value"]["choices"] for made in tasks[0]["annotations"]] == [
        ["good"],
        ["bad"],
    ]
    screened = store.with_name("screened.csv")
    error = refused("labels", "export", store, screened, "--format", "asreview")
    assert "which of the labels good, bad means included is not known" in error
    done("labels", "export", store, screened, "--format", "asreview", "--positive", "good")
    assert [row["included"] for row in rows_of(screened)[:4]] == ["0", "0", "1", "0"]
    assert len(rows_of(screened)) == 60
    with LabelStore.open(store) as opened:
        opened.set_meta(goal='"find"')  # the first label is looked for
    done("labels", "export", store, screened, "--format", "asreview", "--force")


def test_export_to_standard_output(store: Path) -> None:
    shown = done("labels", "export", store, "-", "--format", "jsonl").stdout
    assert len(shown.splitlines()) == 41
    assert "format is not known by the suffix ''" in refused("labels", "export", store, "-")
    both = refused("labels", "export", store, "-", "--format", "csv", "--json", code=2)
    assert "both write to standard output" in both


def test_export_replaces_nothing_and_leaves_no_part(store: Path) -> None:
    out = store.with_name("labels.csv")
    out.write_text("mine")
    assert "labels.csv exists and is kept" in refused("labels", "export", store, out)
    assert out.read_text() == "mine"
    assert "no directory" in refused("labels", "export", store, store.with_name("no") / "a.csv")
    missing = refused("labels", "export", store.with_name("no.db"), out, "--force")
    assert "no.db: does not exist; give the name of a label store" in missing
    reviews = store.with_name("reviews.csv")
    assert "is not a label store" in refused("labels", "export", reviews, out, "--force")


def test_the_store_is_never_replaced(store: Path) -> None:
    before = store.read_bytes()
    error = refused("labels", "export", store, store, "--format", "csv", "--force")
    assert "is the label store, which is not replaced" in error
    assert "is the label store" in refused("train", store, store, "--force", "-q")
    assert store.read_bytes() == before


def test_items_that_moved_or_changed_are_refused_by_name(store: Path, tmp_path: Path) -> None:
    out, reviews = tmp_path / "tasks.json", tmp_path / "reviews.csv"
    moved = reviews.rename(tmp_path / "moved.csv")
    error = refused("labels", "export", store, out)
    assert "reviews.csv, which does not exist. Name their file or folder by --items" in error
    done("labels", "export", store, out, "--items", moved)
    write_reviews(reviews, 30)
    error = refused("labels", "export", store, out, "--force")
    assert "has labels of reviews.csv (60 items), not of reviews.csv (30 items)" in error
    LabelStore.open(tmp_path / "bare.db").close()
    error = refused("labels", "export", tmp_path / "bare.db", out, "--force")
    assert "does not know where its items are. Name their file or folder by --items" in error


# -- import ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl", "tasks.json"])
def test_import_into_a_fresh_store_gives_the_same_answers(store: Path, name: str) -> None:
    out, fresh = store.with_name(name), store.with_name("fresh.db")
    done("labels", "export", store, out, "--each")
    report = json.loads(done("labels", "import", fresh, out, "--json").stdout)
    assert (report["same"], report["older"]) == (0, 0)
    with LabelStore.open(store) as one, LabelStore.open(fresh) as two:
        before, after = Answers(one.events()), Answers(two.events())
    assert sorted(after.answered()) == sorted(before.answered())
    for item in before.touched():
        for who in (None, "ann", "bob"):
            old, new = before.answer(item, who), after.answer(item, who)
            assert (old and old[:2]) == (new and new[:2])
            assert after.flagged(item, who) == before.flagged(item, who)
            assert after.note(item, who) == before.note(item, who)
    again = done("labels", "import", fresh, out).stdout
    assert f"fresh.db: 0 events added; of {report['records']} records" in again


def test_import_of_a_table_that_another_program_labelled(store: Path, tmp_path: Path) -> None:
    text = "title,abstract,asreview_label\n"
    rows = rows_of(store.with_name("reviews.csv"))
    text += "".join(f"{row['title']},{row['abstract']},{k % 2}\n" for k, row in enumerate(rows))
    (tmp_path / "screened.csv").write_text(text)
    reviews = tmp_path / "reviews.csv"
    arguments = ("--items", reviews, "--positive", "good", "--annotator", "asreview")
    done("labels", "import", store, tmp_path / "screened.csv", *arguments)
    with LabelStore.open(store) as opened:
        answers = Answers(opened.events())
    own = [event.label for event in answers.effective("asreview")]
    assert own == ["bad", "good"] * 30
    assert {event.purpose for event in answers.effective("asreview")} == {"import"}


def test_a_fresh_store_remembers_the_items_of_an_import(store: Path, tmp_path: Path) -> None:
    done("labels", "export", store, tmp_path / "labels.csv")
    fresh, reviews = tmp_path / "fresh.db", tmp_path / "reviews.csv"
    done("labels", "import", fresh, tmp_path / "labels.csv", "--items", reviews)
    done("train", fresh, tmp_path / "model.mwz", "-q")
    reviews.write_text("title,abstract\n")  # items that are gone do not hinder an import
    again = done("labels", "import", fresh, tmp_path / "labels.csv").stdout
    assert "0 events added" in again


def test_import_refuses_wrong_files(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "given.csv"
    cases = {
        "": "given.csv: the file is empty",
        "item,label\n": "has no labels; expected at least one answer, flag or note",
        "item,tag\na,good\n": "column 'label' is missing; the file has item, tag",
        "item,label\na,good\n": "given.csv:2: there is no item 'a' among the items",
        "title,label\nFilm 3,nice\n": "given.csv:2: the label 'nice' is unknown; expected one of g",
    }
    for text, expected in cases.items():
        file.write_text(text)
        assert expected in refused("labels", "import", store, file)
    file.write_bytes(b"item,label\na,\xff\n")
    assert "is not UTF-8 text: byte 14" in refused("labels", "import", store, file)
    assert "No such file" in refused("labels", "import", store, tmp_path / "no.csv")
    with LabelStore.open(store) as opened:
        assert len(opened.events()) == 45


# -- info ------------------------------------------------------------------------------------------


def test_info_counts_labels_annotators_and_agreement(store: Path) -> None:
    report = json.loads(done("labels", "info", store, "--json").stdout)
    assert report["items"] == {"name": "reviews.csv", "count": 60}
    assert report["labels"] == {"good": 19, "bad": 21}
    assert (report["skipped"], report["flagged"], report["notes"]) == (1, 1, 1)
    assert report["annotators"]["ann"] == {
        "labels": 40,
        "skips": 0,
        "seconds": 2.0,
        "per_hour": 360.0,
    }
    (pair,) = report["agreement"]
    assert (pair["items"], pair["agree"], pair["kappa"]) == (2, 0.5, 0.0)
    shown = done("labels", "info", store).stdout
    assert "ann and bob: 2 items labelled by both, 50.0% alike, Cohen's kappa 0.000" in shown


def test_info_of_any_file_describes_stores(store: Path) -> None:
    assert done("info", store).stdout == done("labels", "info", store).stdout


def test_info_of_an_empty_store(tmp_path: Path) -> None:
    LabelStore.open(tmp_path / "new.db").close()
    report = json.loads(done("labels", "info", tmp_path / "new.db", "--json").stdout)
    assert (report["events"], report["labels"], report["annotators"]) == (0, {}, {})
    assert "events: 0, from - to -" in done("labels", "info", tmp_path / "new.db").stdout


# -- train -----------------------------------------------------------------------------------------


def test_train_learns_the_labelled_items_and_predict_reads_the_same_kind(store: Path) -> None:
    model, reviews = store.with_name("model.mwz"), store.with_name("reviews.csv")
    report = json.loads(done("train", store, model, "--json", "-q").stdout)
    assert report["rows"] == 40
    assert report["classes"] == ["bad", "good"]
    predicted = done("predict", model, reviews, "-", "-q").stdout.split()
    assert predicted == ["good", "bad"] * 30
    encoder = load(model).steps[0][1]
    assert list(encoder.feature_names_in_) == ["title", "abstract"]
    assert len(encoder.vectorizers_[0].vocabulary_) == 51  # of all 60 titles, labelled or not


def test_labels_that_are_integers_are_learned_as_such(tmp_path: Path) -> None:
    rows = [{"text": f"{('good', 'grim')[k % 2]} film {k}", "stars": k % 2} for k in range(30)]
    path, model, out = (tmp_path / name for name in ("films.jsonl", "m.mwz", "labels.csv"))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    request = Request(str(path), Columns("stars", ("text",)))
    items = open_items(request.items, request.columns)
    with LabelStore.open(tmp_path / "labels.db", items=item_set(items)) as opened:
        remember(opened, request)
        for k, item in enumerate(items.ids):
            give(opened, item, str(k % 2), "ann", k)
    done("train", tmp_path / "labels.db", model, "-q")
    report = json.loads(done("test", model, path, "--label", "stars", "--json", "-q").stdout)
    assert report["error"] == 0
    done("labels", "export", tmp_path / "labels.db", out, "--items", path)
    assert [row["stars"] for row in rows_of(out)[:2]] == ["0", "1"]


def test_train_reads_items_with_the_columns_that_were_labelled(tmp_path: Path) -> None:
    store = write_store(tmp_path, columns=Columns(text=("abstract",)))
    model = tmp_path / "model.mwz"
    moved = (tmp_path / "reviews.csv").rename(tmp_path / "moved.csv")
    assert "which does not exist" in refused("train", store, model, "-q")
    done("train", store, model, "--items", moved, "-q")
    assert list(load(model).steps[0][1].feature_names_in_) == ["abstract"]


@pytest.mark.parametrize("suffix", ["npz", "csv"])
def test_train_on_a_store_of_rows_of_numbers(tmp_path: Path, suffix: str) -> None:
    X = np.random.RandomState(0).standard_normal((50, 3))
    X[:, 1] += 100
    path, model = tmp_path / f"rows.{suffix}", tmp_path / "model.mwz"
    if suffix == "npz":
        np.savez(path, X=X)
    else:
        np.savetxt(path, X, delimiter=",", header="a,b,c", comments="")
    request = Request(str(path), Columns())
    items = open_items(request.items, request.columns)
    with LabelStore.open(tmp_path / "labels.db", items=item_set(items)) as store:
        remember(store, request)
        for k in range(30):
            give(store, items.ids[k], "up" if X[k, 0] > 0 else "down", "ann", k)
    done("train", tmp_path / "labels.db", model, "-q")
    predicted = done("predict", model, path, "-", "-q").stdout.split()
    right = np.mean(np.array(predicted) == np.where(X[:, 0] > 0, "up", "down"))
    assert right > 0.85


def write_asked(folder: Path, purposes: list[str], unasked: int = 100) -> Path:
    """Write a store whose strategy asked about items that cannot be told apart."""
    rng = np.random.default_rng(0)
    up = rng.random(len(purposes) + unasked) < 0.5
    X = rng.normal(size=(len(up), 2)) + np.where(up, 4.0, -4.0)[:, None]
    difficult = np.flatnonzero(np.array(purposes) == "strategy")
    X[difficult] = rng.normal(size=(len(difficult), 2)) / 4
    np.savez(folder / "rows.npz", X=X)
    request = Request(str(folder / "rows.npz"), Columns())
    items = open_items(request.items, request.columns)
    with LabelStore.open(folder / "labels.db", items=item_set(items)) as store:
        remember(store, request)
        labels = zip(items.ids, purposes, up.tolist(), strict=False)
        store.append_all(
            Event(kind="label", item=item, label="up" if y else "down", annotator="a", purpose=why)
            for item, why, y in labels
        )
    return folder / "labels.db"


def test_the_error_is_that_of_answers_drawn_at_random(tmp_path: Path) -> None:
    purposes = ["random", "strategy", "holdout", "strategy", "overlap", "strategy"] * 20
    run = done("train", write_asked(tmp_path, purposes), tmp_path / "m.mwz", "--json")
    report = json.loads(run.stdout)
    assert report["error_rows"] == 60
    assert report["error"] < 0.1  # of all answers, about a quarter are predicted wrongly
    bounds = binomial_bounds(round(60 * report["error"]), 60)
    assert (report["error_low"], report["error_high"]) == bounds
    assert "cv_error" not in report
    searched = "the 60 answers that were drawn at random"
    assert report["searched_on"] == searched
    assert f"selecting C and gamma on {searched}" in run.stderr
    shown = done("train", tmp_path / "labels.db", tmp_path / "n.mwz", "-q").stdout
    assert f"error {100 * report['error']:.2f} % (95 % interval " in shown
    assert "60 answers drawn at random)" in shown


@pytest.mark.parametrize(
    ("drawn", "options", "why"),
    [
        (20, [], "because only 20 of them were drawn at random"),
        (60, ["--search", "halving"], "because of --search halving"),
    ],
)
def test_a_search_on_all_answers_says_why(
    tmp_path: Path, drawn: int, options: list[str], why: str
) -> None:
    store = write_asked(tmp_path, ["random"] * drawn + ["strategy"] * 60)
    run = done("train", store, tmp_path / "m.mwz", "--json", *options)
    report = json.loads(run.stdout)
    assert report["error_rows"] == drawn
    assert report["error"] < 0.2
    assert report["searched_on"] == f"all {60 + drawn} answers, {why}"


def test_without_random_answers_no_error_is_reported(tmp_path: Path) -> None:
    store = write_asked(tmp_path, ["random"] * 9 + ["strategy", "browse", "import"] * 20)
    run = done("train", store, tmp_path / "m.mwz")
    assert "no honest estimate of the error: 9 of 69 answers were drawn at random" in run.stderr
    assert "Label with --holdout 0.1" in run.stderr
    assert "error not estimated" in run.stdout
    report = json.loads(done("train", store, tmp_path / "n.mwz", "-q", "--json").stdout)
    assert report["error"] is None
    assert "error_low" not in report


def test_answers_to_all_items_are_a_sample_whatever_was_asked_first(tmp_path: Path) -> None:
    store = write_asked(tmp_path, ["strategy", "import"] * 40, unasked=0)
    report = json.loads(done("train", store, tmp_path / "m.mwz", "-q", "--json").stdout)
    assert report["error_rows"] == 80
    assert 0.1 < report["error"] < 0.5


def test_a_corrected_random_answer_remains_random(tmp_path: Path) -> None:
    store = write_asked(tmp_path, ["random"] * 10 + ["strategy"] * 30)
    with LabelStore.open(store) as opened:
        first = opened.events()[0]
        again = {"label": first.label, "annotator": "b", "purpose": "browse"}
        opened.append(Event(kind="label", item=first.item, **again))
    report = json.loads(done("train", store, tmp_path / "m.mwz", "-q", "--json").stdout)
    assert report["error_rows"] == 10


def test_the_error_is_not_estimated_with_given_parameters(tmp_path: Path) -> None:
    store = write_asked(tmp_path, ["random"] * 20)
    for options, estimated in ((["-c", 1], False), (["-c", 1, "--cv", 4], True)):
        run = done("train", store, tmp_path / "m.mwz", "-q", "--force", "--json", *options)
        assert ("error" in json.loads(run.stdout)) == estimated


def test_a_search_on_random_answers_only_gives_no_reason(tmp_path: Path) -> None:
    store = write_asked(tmp_path, ["random"] * 20)
    report = json.loads(done("train", store, tmp_path / "m.mwz", "-q", "--json").stdout)
    assert report["searched_on"] == "all 20 answers"


def test_missing_values_of_the_items_are_stored(tmp_path: Path) -> None:
    """`train` adds its own to those of `label`."""
    path, model = tmp_path / "items.csv", tmp_path / "m.mwz"
    path.write_text("a,b\n" + "".join(f"{k % 7 or 'unk'},{k % 11 or '-'}\n" for k in range(24)))
    store = tmp_path / "labels.db"
    options = ["--labels", "low,high", "--missing", "unk", "--missing", "-", "--get", "/api/state"]
    assert done("label", path, "--store", store, *options, "-q").stderr == ""
    items = open_items(str(path), Columns())
    with LabelStore.open(store) as opened:
        for k, item in enumerate(items.ids):
            give(opened, item, ("low", "high")[k // 12], "ann", k)
    done("train", store, model, "-c", 1, "-g", 1, "-q", "--missing", "-999")
    assert load(model)[0].kinds_ == ["numeric", "numeric"]
    assert load(model)[0].missing == ["unk", "-", "-999"]


def test_train_refuses_stores_that_cannot_be_learned(store: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.mwz"
    error = refused("train", store, model, "--stream", "-q", code=2)
    assert "--stream, --checkpoint, --groups and --label are not for label stores" in error
    reviews = tmp_path / "reviews.csv"
    error = refused("train", reviews, model, "--items", reviews, "-q", code=2)
    assert "--items requires a label store" in error
    (tmp_path / "few").mkdir()
    few = write_store(tmp_path / "few", labelled=0)
    assert "all rows have the label bad; expected at least two" in refused("train", few, model)
    (tmp_path / "texts").mkdir()
    for k in range(3):
        (tmp_path / "texts" / f"{k}.txt").write_text(f"text number {k}")
    request = Request(str(tmp_path / "texts"), Columns())
    items = open_items(request.items)
    with LabelStore.open(tmp_path / "texts.db", items=item_set(items)) as opened:
        remember(opened, request)
        error = refused("train", tmp_path / "texts.db", model, "-q")
        assert "has no labels; label some items first" in error
        give(opened, items.ids[0], "x", "ann", 0)
        give(opened, items.ids[1], "y", "ann", 1)
    error = refused("train", tmp_path / "texts.db", model, "-q")
    assert "the items are files, which `predict` cannot read" in error
    assert not model.exists()
