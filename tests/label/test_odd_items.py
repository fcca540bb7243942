"""Items as users have them: missing values, wrong columns, functions that fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from marginwise.data import DataError
from marginwise.label.features import make_features
from marginwise.label.item_files import Columns, open_items

pytest.importorskip("pyarrow", reason="tables are read with pyarrow")


def test_rows_without_any_text_do_not_shift_labels_and_titles(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    rows = [",,a", "First,one,a", ",,b", "Second,,b", ",three,a"]
    path.write_text("\n".join(["title,abstract,label", *rows]) + "\n")
    items = open_items(path, Columns(label="label", text=("title", "abstract")))
    assert items.rows == 5
    assert items.content.values() == ["", "First\n\none", "Second", "three"]
    assert items.labels == ["a", "a", "b", "a"]
    assert items.content.show(1) == {"title": "First", "text": "one"}
    assert items.content.show(2) == {"text": "Second"}  # a title alone is the text
    assert items.content.show(3) == {"text": "three"}


def test_paths_of_images_that_are_numbers_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="images are read with Pillow")
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps({"image": k}) + "\n" for k in (1, 2)))
    with pytest.raises(DataError, match=r"there are no items.* 2 files are left out"):
        open_items(path, Columns(image="image"))


def test_the_label_column_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("text,kind\nsome words,a\nother words,b\n")
    with pytest.raises(ValueError, match="'kind' is the label column, so it cannot be shown"):
        open_items(path, Columns(label="kind", text=("text", "kind")))


def test_arrays_have_no_columns_of_text(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(ValueError, match="leave out --text-column"):
        open_items(tmp_path / "x.npy", Columns(text=("text",)))


def test_values_that_are_not_finite_are_shown_as_missing(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", [[np.nan, 1.5], [np.inf, 0.0]])
    items = open_items(tmp_path / "x.npy")
    assert items.content.show(0) == {"fields": [["x0", None], ["x1", 1.5]]}
    assert items.content.show(1) == {"fields": [["x0", None]]}


def test_a_function_of_features_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_features.py").write_text("def f(items):\n    return items[99]\n")
    (tmp_path / "items.csv").write_text("text\nsome words\nother words\n")
    monkeypatch.chdir(tmp_path)
    items = open_items(tmp_path / "items.csv")
    with pytest.raises(ValueError, match=r"failing_features:f raised IndexError: .* 2 items"):
        make_features(items, "failing_features:f")
