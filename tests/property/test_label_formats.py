"""Labels that leave a store and come back: the same answers, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginwise.data import DataError
from marginwise.label import Answers, Event, LabelStore
from marginwise.label.exchange import FORMATS
from marginwise.label.formats import Context, format_of, read_time, shown_time
from marginwise.label.records import Imported, Record, import_records, records_of

ITEMS = ("a", "b", "c")
FIELDS = {
    item: {"title": f"T {item}", "abstract": f'On "{item}",\nand more', "year": k}
    for k, item in enumerate(ITEMS)
}
LABELS = ("relevant", "other")
CONTEXT = Context(FIELDS, "text", LABELS, "relevant")

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
answers_given = st.lists(
    st.tuples(
        st.sampled_from(ITEMS),
        st.sampled_from(["ann", "bob, jr.", "Zoë"]),
        st.sampled_from([*LABELS, None]),
        st.booleans(),
        st.one_of(st.just(""), texts),
        st.one_of(st.none(), st.floats(0, 1e4)),
    ),
    max_size=12,
)


def filled(path: Path, done: list[tuple[Any, ...]]) -> Answers:
    """Fill a store; return its state."""
    with LabelStore.open(path) as store:
        events = []
        for k, (item, who, label, flag, note, seconds) in enumerate(done):
            more = {"item": item, "annotator": who, "time": 1e9 + k / 3}
            kind = "skip" if label is None else "label"
            events.append(Event(kind=kind, label=label, duration=seconds, **more))
            if flag:
                events.append(Event(kind="flag", text="on", **more))
            if note:
                events.append(Event(kind="note", text=note, **more))
        store.append_all(events)
        return Answers(store.events())


def imported(path: Path, name: str, text: str, context: Context = CONTEXT) -> Imported:
    with LabelStore.open(path) as store:
        records = list(FORMATS[name].read(text, f"file.{name}", context))
        return import_records(store, records, "import")


def state(path: Path) -> Answers:
    with LabelStore.open(path, readonly=True) as store:
        return Answers(store.events())


def essence(answers: Answers, who: str | None) -> list[tuple[Any, ...]]:
    """Return all that formats carry of the state, by item."""
    found: list[tuple[Any, ...]] = []
    for record in records_of(answers, None, each=who is not None):
        time = None if record.time is None else round(record.time, 5)
        values = (record.item, record.kind, record.label, record.annotator, time)
        found.append((*values, record.duration, record.flagged, record.note))
    return sorted(found, key=str)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(done=answers_given)
@pytest.mark.parametrize("name", ["csv", "jsonl", "label-studio"])
@pytest.mark.parametrize("fields", [True, False])
def test_a_round_trip_gives_the_same_answers(
    name: str, fields: bool, done: list[tuple[Any, ...]]
) -> None:
    context = CONTEXT if fields else Context(labels=LABELS)
    with TemporaryDirectory() as folder:
        first, second = Path(folder) / "1.db", Path(folder) / "2.db"
        before = filled(first, done)
        text = "".join(FORMATS[name].write(records_of(before, each=True), context))
        report = imported(second, name, text, context)
        after = state(second)
        assert essence(after, "each") == essence(before, "each")
        for item in ITEMS:  # the most recent answer of all annotators
            old, new = before.answer(item), after.answer(item)
            assert (old and old[:2]) == (new and new[:2])
        again = imported(second, name, text, context)
        assert again.added == 0
        assert again.older == 0
        assert state(second).seq == after.seq == report.added
        assert imported(first, name, text, context).added == 0  # where it came from


@settings(max_examples=25, deadline=None)
@given(done=answers_given)
def test_a_round_trip_by_asreview_keeps_labels_and_notes(done: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as folder:
        first, second = Path(folder) / "1.db", Path(folder) / "2.db"
        before = filled(first, done)
        text = "".join(FORMATS["asreview"].write(records_of(before), CONTEXT))
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert [row["title"] for row in rows] == [fields["title"] for fields in FIELDS.values()]
        imported(second, "asreview", text)
        after = state(second)
        for item in ITEMS:
            old, new = before.answer(item), after.answer(item)
            expected = old.label if old is not None and old.kind == "label" else None
            assert (new.label if new is not None else None) == expected
            assert after.note(item) == before.note(item)


@settings(max_examples=50, deadline=None)
@given(seconds=st.floats(0, 4e9))
def test_times_keep_their_microseconds(seconds: float) -> None:
    found = read_time(shown_time(seconds), "")
    assert found is not None
    assert abs(found - seconds) < 2e-6


def test_times_are_read_as_others_write_them() -> None:
    assert read_time("1970-01-01T00:01:00Z", "") == 60
    assert read_time("1970-01-01 01:01:00+01:00", "") == 60
    assert read_time("1970-01-01", "") == 0
    assert read_time(12, "") == 12
    assert read_time("", "") is None
    for wrong in ("yesterday", -1, "1960-01-01", 1e300, float("inf"), float("nan")):
        with pytest.raises(DataError, match=r"f:3: .* is not a time since 1970; expected one such"):
            read_time(wrong, "f:3")


# -- importing -------------------------------------------------------------------------------------


def record(label: str, time: float | None = None, **more: Any) -> Record:
    return Record("a", "ann", "label", label, time, **more)


def test_an_import_does_not_bring_back_what_was_changed_since(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        old = record("relevant", 100.0)
        assert import_records(store, [old], "x") == Imported(1, 0, 0)
        change = Event(kind="label", item="a", annotator="ann", label="other", time=200.0)
        store.append(change)
        assert import_records(store, [old], "x") == Imported(0, 0, 1)
        assert import_records(store, [record("relevant", 150.0)], "x") == Imported(0, 0, 1)
        assert import_records(store, [record("relevant", 250.0)], "x") == Imported(1, 0, 0)
        found = Answers(store.events()).answer("a")
        assert found is not None
        assert (found.label, found.event.purpose) == ("relevant", "import")


def test_an_import_without_times_is_stored_once(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        assert import_records(store, [Record("a", None, "label", "x")], "file") == Imported(1, 0, 0)
        store.append(Event(kind="label", item="a", annotator="file", label="y"))
        assert import_records(store, [Record("a", None, "label", "x")], "file") == Imported(0, 1, 0)
        assert Answers(store.events()).answer("a", "file")[1] == "y"  # type: ignore[index]


def test_unknown_labels_are_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.set_meta(labels='["spam", "ham"]')
        records = [record("spam", where="f:2"), record("Spam", where="f:3")]
        with pytest.raises(DataError, match="f:3: the label 'Spam' is unknown; expected one of sp"):
            import_records(store, records, "x")
        assert store.events() == []


# -- files of other programs -----------------------------------------------------------------------


def read(name: str, text: str, context: Context = CONTEXT) -> list[Record]:
    return list(FORMATS[name].read(text, "file", context))


def test_rows_without_ids_are_found_by_their_columns() -> None:
    (found,) = read("csv", "title,label\nT b,other\nT a,\n")
    assert (found.item, found.label) == ("b", "other")
    (found,) = read("asreview", "title,year,included\nT c,2,1\nT b,1,\n")
    assert (found.item, found.label) == ("c", "relevant")
    task = {"data": {"title": "T c"}, "annotations": [choice("other")]}
    (found,) = read("label-studio", json.dumps([task]))
    assert (found.item, found.label, found.annotator) == ("c", "other", "7")


def choice(*names: str, **more: Any) -> dict[str, Any]:
    """Return an annotation as Label Studio exports it."""
    value = {"choices": list(names)}
    result = {"id": "x", "from_name": "s", "to_name": "t", "type": "choices", "value": value}
    made = {
        "id": 3,
        "completed_by": 7,
        "result": [result],
        "was_cancelled": False,
        "lead_time": 2.5,
    }
    return {**made, "created_at": "2021-03-09T22:16:08.728353Z", **more}


def test_annotations_of_label_studio_are_read() -> None:
    user = {"id": 1, "email": "zoe@example.org"}
    annotations = [
        choice("relevant", completed_by=user),
        choice("other", was_cancelled=True),
        {"result": [], "was_cancelled": False},
    ]
    task = {"id": 5, "data": {"title": "T a"}, "annotations": annotations, "predictions": []}
    one, two = read("label-studio", json.dumps([task, {"data": {"title": "T b"}}]))
    assert (one.kind, one.label, one.annotator) == ("label", "relevant", "zoe@example.org")
    assert (one.duration, shown_time(one.time)) == (2.5, "2021-03-09T22:16:08.728353Z")
    assert (two.kind, two.label, two.annotator) == ("skip", None, "7")


def test_labels_of_asreview_are_read() -> None:
    text = "title,abstract,asreview_label,asreview_note\nT a,,1.0,\nT b,,0,odd\nT c,,,\n"
    context = Context({k: {"title": v["title"]} for k, v in FIELDS.items()}, "text", LABELS)
    with pytest.raises(ValueError, match="which of the labels x, y means included is not known"):
        read("asreview", text, Context(context.fields, labels=("x", "y")))
    one, two = read("asreview", text, context)
    assert [(r.item, r.label, r.note) for r in (one, two)] == [
        ("a", "relevant", ""),
        ("b", "other", "odd"),
    ]
    (fresh,) = read("asreview", "item,included\nq,1\n", Context())
    assert (fresh.item, fresh.label) == ("q", "1")


def test_formats_are_known_by_suffix_and_columns() -> None:
    assert format_of("a/b.CSV") == "csv"
    assert format_of("b.jsonl") == "jsonl"
    assert format_of("b.json") == "label-studio"
    assert format_of("b.csv", "title,Included\n") == "asreview"
    assert format_of("b.csv", "item,label,kind,included\n") == "csv"
    with pytest.raises(ValueError, match=r"b.xlsx: the format is not known by the suffix '.xlsx'"):
        format_of("b.xlsx")


WRONG = {
    "csv": {
        "": "file: the file is empty; expected the names of the columns",
        "item,answer\na,1\n": "file: column 'label' is missing; the file has item, answer",
        "label,item\nx,q\n": "file:2: there is no item 'q' among the items",
        "label,colour\nx,red\n": "file:2: no column is one of the items: it has colour, and the",
        "label,title\nx,T z\n": "file:2: no item has the same title; expected exactly one",
        "label,item\nx,a\nx\n": "file:3: expected 2 values, as in the first line",
        "label,item\nx,a,b\n": "file:2: expected 2 values",
        "item,label,kind\na,,label\n": "file:2: the kind 'label' does not go with the label ''",
        "item,label,kind\na,x,undo\n": "file:2: the kind 'undo' does not go with the label 'x'",
        "item,label,flagged\na,x,perhaps\n": "file:2: flagged is 'perhaps'; expected true or false",
        "item,label,time\na,x,noon\n": "file:2: 'noon' is not a time since 1970",
        "item,label,duration\na,x,-1\n": "file:2: the duration '-1' is not a number of seconds",
    },
    "jsonl": {
        '{"item": "a", "label": "x"}\n{oops}': "file:2: this is not JSON",
        "[1]": "file:1: expected a JSON object",
        '{"item": "a"}': "file:1: the key 'label' is missing; the object has item",
    },
    "label-studio": {
        "{}": "file: expected a list of tasks, as Label Studio exports them",
        "[1]": "file: task 1: expected an object with 'data'",
        "oops": "file: this is not JSON",
        '[{"data": {}, "annotations": [1]}]': "file: task 1: no column is one of the items",
        '[{"data": {"title": "T a"}, "annotations": [1]}]': "task 1: expected an object for each",
    },
    "asreview": {
        "title\nT a\n": "file: column 'included' is missing; the file has title",
        "title,included\nT a,maybe\n": "file:2: included is 'maybe'; expected 1, 0 or nothing",
    },
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, cases in WRONG.items() for text in cases]
)
def test_wrong_files_are_refused_by_place(name: str, text: str) -> None:
    with pytest.raises(DataError) as error:
        read(name, text)
    assert WRONG[name][text] in str(error.value)


def test_several_choices_are_refused() -> None:
    task = {"data": {"title": "T a"}, "annotations": [choice("relevant", "other")]}
    with pytest.raises(DataError, match="task 1: an annotation has the choices relevant, other"):
        read("label-studio", json.dumps([task]))


def test_ids_are_needed_without_items() -> None:
    with pytest.raises(DataError, match="file:2: the id of the item is missing; expected it in"):
        read("csv", "title,label\nT a,x\n", Context())


def test_ambiguous_rows_are_refused() -> None:
    twins = Context({"a": {"title": "T", "n": 1}, "b": {"title": "T", "n": 2}})
    with pytest.raises(DataError, match="several items have the same title"):
        read("csv", "title,label\nT,x\n", twins)


def test_the_positive_label_must_be_known() -> None:
    with pytest.raises(ValueError, match="--positive is 'q', which is not a label; expected one"):
        read("asreview", "item,included\na,1\n", Context(labels=("x", "y"), positive="q"))
    with pytest.raises(ValueError, match="ASReview knows two labels, but there are 3: x, y, z"):
        read("asreview", "item,included\na,1\n", Context(labels=("x", "y", "z")))


def test_columns_of_items_do_not_hide_those_of_the_labels() -> None:
    context = Context({"a": {"label": "old", "text": "hello"}})
    (line,) = FORMATS["jsonl"].write([record("new", 0.0)], context)
    row = json.loads(line)
    assert (row["label"], row["item_label"], row["text"]) == ("new", "old", "hello")
    assert read("jsonl", line, context)[0].label == "new"


@pytest.mark.parametrize("name", ["csv", "jsonl", "asreview"])
@pytest.mark.parametrize("note", ["a\rb", "a\r\nb\n", "\x00", '"', ",", "\u2028", " x ", "\ufeff"])
def test_odd_characters_survive(name: str, note: str) -> None:
    text = "".join(FORMATS[name].write([record("relevant", 0.0, note=note)], CONTEXT))
    assert [(r.item, r.note) for r in read(name, text)] == [("a", note)]


def test_long_texts_are_read() -> None:
    note = "x" * 200_000
    text = "".join(FORMATS["csv"].write([record("new", 0.0, note=note)], Context()))
    assert read("csv", text, Context())[0].note == note


# -- read by the other programs --------------------------------------------------------------------


def test_asreview_reads_what_is_exported(tmp_path: Path) -> None:
    pytest.importorskip("asreview", reason="asreview is not installed")
    from asreview.data.tabular import CSVReader

    done = [("a", "ann", "relevant", False, "odd", None), ("b", "ann", "other", False, "", None)]
    before = filled(tmp_path / "labels.db", done)
    path = tmp_path / "screened.csv"
    path.write_text("".join(FORMATS["asreview"].write(records_of(before), CONTEXT)))
    records = CSVReader.read_records(path, dataset_id="d")
    assert [r.included for r in records] == [1, 0, None]
    assert [r.title for r in records] == ["T a", "T b", "T c"]
    assert records[0].abstract == FIELDS["a"]["abstract"]


def test_label_studio_accepts_what_is_exported(tmp_path: Path) -> None:
    interface = pytest.importorskip(
        "label_studio_sdk.label_interface", reason="label-studio-sdk is not installed"
    )
    done = [("a", "ann", "relevant", True, "odd", 2.0), ("b", "ann", None, False, "", None)]
    before = filled(tmp_path / "labels.db", done)
    tasks = json.loads("".join(FORMATS["label-studio"].write(records_of(before), CONTEXT)))
    config = interface.LabelInterface(
        '<View><Text name="text" value="$abstract"/><Choices name="label" toName="text">'
        '<Choice value="relevant"/><Choice value="other"/></Choices></View>'
    )
    for task in tasks:
        assert config.validate_task({"data": task["data"]})
        assert all(config.validate_annotation(made) for made in task["annotations"])
