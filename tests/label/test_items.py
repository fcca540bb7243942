"""Items from files and folders, and their features."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise import OnlineSVC, load, save
from marginwise.data import DataError, write_svmlight
from marginwise.label.features import make_features
from marginwise.label.images import edge_histograms
from marginwise.label.item_files import Columns, open_items
from marginwise.label.items import checked_labels

pa = pytest.importorskip("pyarrow", reason="tables are read with pyarrow")

ROWS: list[dict[str, Any]] = [
    {"title": "First", "body": "one two three", "kind": "a"},
    {"title": "Second", "body": "two three four", "kind": None},
    {"title": "First", "body": "one two three", "kind": "b"},
    {"title": "Third", "body": None, "kind": "b"},
]


def write_table(folder: Path, kind: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    path = folder / f"items.{kind}"
    names = list(rows[0])
    if kind == "csv":
        lines = [
            ",".join("" if row[name] is None else str(row[name]) for name in names) for row in rows
        ]
        path.write_text("\n".join([",".join(names), *lines]) + "\n")
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_texts_are_joined_and_duplicates_grouped(tmp_path: Path, kind: str) -> None:
    columns = Columns(label="kind", text=("title", "body"))
    items = open_items(write_table(tmp_path, kind), columns)
    assert items.content.values() == [
        "First\n\none two three",
        "Second\n\ntwo three four",
        "Third",
    ]
    assert [(shown["title"], shown["text"]) for shown in map(items.show, range(3))] == [
        ("First", "one two three"),
        ("Second", "two three four"),
        ("Third", ""),
    ]
    assert items.counts.tolist() == [2, 1, 1]
    assert items.show(0)["duplicates"] == 1
    assert items.labels == ["a", None, "b"]
    assert "1 of 4 rows are duplicates" in items.notes[0]
    assert "different labels" in items.notes[1]


def test_ids_depend_on_the_content_alone(tmp_path: Path) -> None:
    columns = Columns(text=("title", "body"))
    found = [
        open_items(write_table(tmp_path, kind), columns) for kind in ("csv", "jsonl", "parquet")
    ]
    again = open_items(write_table(tmp_path, "csv", ROWS[::-1]), columns)
    assert found[0].ids == found[1].ids == found[2].ids
    assert sorted(again.ids) == sorted(found[0].ids)
    assert again.ids != found[0].ids
    assert {items.fingerprint for items in [*found, again]} == {again.fingerprint}
    other = open_items(write_table(tmp_path, "csv", ROWS[1:2]), columns)
    assert other.fingerprint != again.fingerprint


def test_text_is_recognised_where_no_column_is_named(tmp_path: Path) -> None:
    rows = [
        {"n": k, "remark": f"some words about thing {k} and that", "c": "xy"[k % 2]}
        for k in range(40)
    ]
    assert open_items(write_table(tmp_path, "csv", rows)).show(3)["text"] == rows[3]["remark"]
    plain = [{"n": k, "c": "xy"[k % 2]} for k in range(40)]
    items = open_items(write_table(tmp_path, "csv", plain))
    assert items.kind == "table"
    assert items.show(3)["fields"] == [["n", "3"], ["c", "y"]]


def test_rows_of_tables_are_encoded(tmp_path: Path) -> None:
    rows = [{"size": k / 7, "colour": ["red", "blue"][k % 2], "y": k % 2} for k in range(30)]
    items = open_items(write_table(tmp_path, "csv", rows), Columns(label="y"))
    features = make_features(items)
    assert features.X.shape == (30, 3)
    assert set(items.labels) == {"0", "1"}
    assert checked_labels(items, None) == ["0", "1"]


def test_features_of_texts_are_part_of_a_model_file(tmp_path: Path) -> None:
    from sklearn.pipeline import Pipeline

    items = open_items(write_table(tmp_path, "csv"), Columns(text=("body",)))
    features = make_features(items)
    assert features.X.dtype == np.float32
    model = OnlineSVC(C=10, gamma=1.0).fit(features.X, ["a", "b", "b"])
    path = tmp_path / "model.mwz"
    save(Pipeline([*features.steps, ("model", model)]), path)
    assert load(path).predict(["one two three"]).tolist() == ["a"]


# -- features without texts ------------------------------------------------------------------------


def test_svmlight_and_arrays_are_features(tmp_path: Path) -> None:
    X = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 1.5], [3.0, 4.0]], dtype=np.float32)
    write_svmlight(X, [0, 1, 0, 1], tmp_path / "x.svm")
    np.save(tmp_path / "x.npy", X)
    for name in ("x.svm", "x.npy"):
        items = open_items(tmp_path / name)
        assert len(items) == 3
        assert items.show(0)["fields"] == [["x1", 1.5]]
        assert items.labels == [None] * 3
        made = make_features(items).X
        dense = made.toarray() if hasattr(made, "toarray") else made
        np.testing.assert_array_equal(dense, X[[0, 1, 3]])
    assert open_items(tmp_path / "x.svm", Columns(label="target")).labels == ["0", "1", "1"]


def test_an_items_file_shows_the_rows_of_an_array(tmp_path: Path) -> None:
    X = np.arange(8.0).reshape(4, 2)
    np.save(tmp_path / "x.npy", X)
    items = open_items(tmp_path / "x.npy", Columns(text=("body",)), write_table(tmp_path, "jsonl"))
    assert items.show(1)["text"] == "two three four"
    np.testing.assert_array_equal(make_features(items).X, X[[0, 1, 3]])
    np.save(tmp_path / "x.npy", X[:3])
    with pytest.raises(DataError, match=r"there are 4 items, but .*x.npy has 3 rows"):
        open_items(tmp_path / "x.npy", Columns(text=("body",)), tmp_path / "items.jsonl")
    with pytest.raises(ValueError, match="has items of its own"):
        open_items(tmp_path / "items.jsonl", None, tmp_path / "x.npy")


def test_functions_of_users_make_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = open_items(write_table(tmp_path, "csv"), Columns(text=("body",)))
    (tmp_path / "lengths.py").write_text(
        "import numpy as np\n"
        "value = 7\n"
        "def good(texts): return [[len(text), 1] for text in texts]\n"
        "def short(texts): return [[1.0]]\n"
        "def flat(texts): return np.ones(len(texts))\n"
        "def words(texts): return [['a'] for _ in texts]\n"
        "def nan(texts): return np.full((len(texts), 2), np.nan)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert make_features(items, "lengths:good").X.tolist() == [[13, 1], [14, 1], [0, 1]]
    for name, message in {
        "lengths:short": r"shape \(1, 1\) .* expected numbers of shape \(3, ",
        "lengths:flat": r"shape \(3,\)",
        "lengths:words": "type <U1",
        "lengths:nan": "not finite",
        "lengths:value": "has no function 'value'",
        "lengths:none": "has no function 'none'",
        "nowhere:good": "'nowhere' cannot be imported",
        "lengths": "must be MODULE:FUNCTION",
    }.items():
        with pytest.raises(ValueError, match=message):
            make_features(items, name)


# -- folders ---------------------------------------------------------------------------------------


def test_a_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("two words")
    (tmp_path / "a.txt").write_text("äöü words")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / ".hidden").write_text("hidden")
    items = open_items(tmp_path)
    assert [items.show(k) for k in range(2)] == [
        {
            "id": items.ids[0],
            "kind": "text",
            "duplicates": 0,
            "text": "äöü words",
            "title": "a.txt",
        },
        {
            "id": items.ids[1],
            "kind": "text",
            "duplicates": 0,
            "text": "two words",
            "title": "b/two.txt",
        },
    ]
    assert "bad.txt" in items.notes[0]
    with pytest.raises(ValueError, match="has no columns"):
        open_items(tmp_path, Columns(text=("body",)))


@pytest.mark.parametrize("size", [(8, 8), (100, 80)])
def test_a_folder_of_images(tmp_path: Path, size: tuple[int, int]) -> None:
    image = pytest.importorskip("PIL.Image", reason="images are read with Pillow")
    rng = np.random.default_rng(0)
    for k in range(4):
        pixels = rng.integers(0, 255, (size[1], size[0], 3)).astype(np.uint8)
        image.fromarray(pixels).save(tmp_path / f"{k}.{['png', 'bmp', 'jpg', 'webp'][k]}")
    items = open_items(tmp_path)
    assert items.kind == "image"
    assert items.show(0)["image"] == f"/api/image/{items.ids[0]}"
    assert items.show(0)["title"] == "0.png"
    X = make_features(items).X
    assert X.shape == (4, 8 * 8 * 3 if size == (8, 8) else 32 * 32 + 8 * 8 * 9 + 64)
    assert np.isfinite(X).all()


def test_edges_are_found_by_their_direction() -> None:
    grey = np.zeros((64, 64), dtype=np.float32)
    grey[:, 32:] = 1  # brightness changes from left to right: direction 0
    cells = edge_histograms(grey)
    assert cells.shape == (8, 8, 9)
    assert set(np.flatnonzero(cells.sum(axis=(0, 2)))) == {3, 4}
    assert cells[..., 1:].sum() == 0


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("", Columns(), "the file is empty"),
        ("text,label\n", Columns(text=("text",)), "no rows"),
        (
            "text,label\nab,c\n",
            Columns(text=("body",)),
            "column 'body' is missing; the data has 'text', 'label'",
        ),
        ("text,label\nab,c\n", Columns(label="y"), "column 'y' is missing"),
        ("text,label\nab,c\n", Columns(image="picture"), "column 'picture' is missing"),
        ("label\nc\n", Columns(label="label"), "no column besides the label"),
    ],
)
def test_bad_tables_are_refused(
    tmp_path: Path, content: str, columns: Columns, message: str
) -> None:
    path = tmp_path / "items.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        open_items(path, columns)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no items"):
        open_items(tmp_path)


def test_texts_without_words_are_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path, "csv", [{"text": "- -"}, {"text": "!"}])
    with pytest.raises(DataError, match="no words of two letters"):
        make_features(open_items(path, Columns(text=("text",))))


def test_unknown_labels_are_refused(tmp_path: Path) -> None:
    items = open_items(write_table(tmp_path, "csv"), Columns(label="kind", text=("body",)))
    assert checked_labels(items, None) == ["a", "b"]
    assert checked_labels(items, ["b", "a", "c"]) == ["b", "a", "c"]
    with pytest.raises(DataError, match="row 4 has the label 'b'; expected one of a, c"):
        checked_labels(items, ["a", "c"])
    for labels in (["a"], ["a", "a"], ["a", ""]):
        with pytest.raises(ValueError, match="two or more different labels"):
            checked_labels(items, labels)
    items.labels = [None, "a", None]
    with pytest.raises(ValueError, match="only 'a'"):
        checked_labels(items, None)
