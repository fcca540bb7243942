"""Odd files through the commands: each has its encoding or its message, and no option twice."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from marginwise import ExactSVC, load, save
from marginwise.cli import main
from marginwise.data import TableEncoder, open_source
from tests.odd_files import LABELS, NUMBERS, ODD_FILES, ROWS, text_of
from tests.support import runner

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("default")  # commands print warnings
TRAINED = [name for name, file in ODD_FILES.items() if not file.refused]
REFUSED = [name for name, file in ODD_FILES.items() if file.refused]


def call(*arguments: object) -> Result:
    return runner().invoke(main, [str(argument) for argument in arguments])


def done(*arguments: object) -> Any:
    """Run a command that must succeed without a warning; return its report."""
    result = call(*arguments, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def train(path: Path, model: Path, *options: object) -> Result:
    return call("train", path, model, "-c", 1, "-g", 1, "--quiet", *options)


@pytest.fixture
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "odd.data"
    path.write_bytes(ODD_FILES[request.node.callspec.params["name"]].content)
    return path


def test_the_corpus_is_large() -> None:
    assert len(ODD_FILES) >= 60
    assert len({file.content for file in ODD_FILES.values()}) >= 60


@pytest.mark.parametrize("name", TRAINED)
def test_odd_files_are_learned(name: str, path: Path, tmp_path: Path) -> None:
    file, model = ODD_FILES[name], tmp_path / "model.mwz"
    result = train(path, model, *file.options)
    assert result.exit_code == 0, result.output
    warnings = result.stderr.splitlines()
    assert len(warnings) == len(file.said), warnings
    for said, line in zip(file.said, warnings, strict=True):
        assert line.startswith("marginwise: warning: ")
        assert said in line
    fitted = load(model)
    assert tuple(fitted[0].kinds_) == file.kinds
    assert fitted[0].notations_[0] == file.notation
    assert tuple(fitted[-1].classes_.tolist()) == file.classes


@pytest.mark.parametrize("name", TRAINED)
def test_no_option_is_repeated_after_train(name: str, path: Path, tmp_path: Path) -> None:
    file, model = ODD_FILES[name], tmp_path / "model.mwz"
    assert train(path, model, *file.options).exit_code == 0
    tested = done("test", model, path)
    assert tested["rows"] == ROWS
    predicted = call("predict", model, path, "--quiet")
    assert predicted.exit_code == 0, predicted.output
    lines = predicted.stdout.splitlines()
    assert len(lines) == ROWS
    assert set(lines) <= set(map(str, file.classes))
    assert done("continue", model, path, tmp_path / "more.mwz")["rows"] == ROWS
    assert tuple(load(tmp_path / "more.mwz")[0].kinds_) == file.kinds


@pytest.mark.parametrize("name", [name for name in TRAINED if not ODD_FILES[name].options])
def test_info_describes_the_encoding(name: str, path: Path) -> None:
    file = ODD_FILES[name]
    result = call("info", path, "--json")
    assert result.exit_code == 0, result.output
    assert all(said in result.stderr for said in file.said)
    found = json.loads(result.stdout)
    assert found["rows"] == ROWS
    kinds = [entry.partition(": ")[2].partition(", as in ")[::2] for entry in found["kinds"]]
    assert tuple(kind for kind, _ in kinds) == file.kinds
    assert (kinds[0][1] == "") == (file.notation == "")


def test_info_names_what_a_model_stores(tmp_path: Path) -> None:
    path, model = tmp_path / "x.csv", tmp_path / "model.mwz"
    path.write_text("a;n;label\n" + "1,5 €;3;no\n2 €;many;yes\n2 €;4;no\n")
    assert train(path, model, "--missing", "many").exit_code == 0
    found = done("info", model)
    assert found["kinds"] == ["a: numeric, as in €1.234,5", "n: numeric, as in 1.234,5"]
    assert found["missing"] == ["many"]


@pytest.mark.parametrize("name", REFUSED)
def test_odd_files_are_refused_by_one_line(name: str, path: Path, tmp_path: Path) -> None:
    file, model = ODD_FILES[name], tmp_path / "model.mwz"
    result = train(path, model, *file.options)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"marginwise: error: {path}")
    assert file.refused in line
    assert not model.exists()
    info = call("info", path)
    assert info.exit_code == 0 or file.refused in info.stderr


@pytest.mark.parametrize("name", [name for name in TRAINED if not ODD_FILES[name].options])
def test_tables_of_strings_have_the_kinds_of_their_files(name: str, path: Path) -> None:
    """Strings in Parquet files and data frames follow the rule of CSV files."""
    from pyarrow import parquet

    source = open_source(path)
    table = open_source(path, encoder=None).load()[0]
    strings = pa.table({name: table[name].cast(pa.string()) for name in table.column_names})
    parquet.write_table(strings, path.with_name("strings.data"))
    with warnings.catch_warnings(record=True) as caught:
        parquet_encoder = open_source(path.with_name("strings.data"), labelled=False).encoder
        frame_encoder = TableEncoder().fit(strings.to_pandas())
        expected = source.encoder
    assert len(caught) == 3 * len(ODD_FILES[name].said)
    for encoder in (parquet_encoder, frame_encoder):
        assert encoder.kinds_ == expected.kinds_
        assert encoder.notations_ == expected.notations_
        np.testing.assert_array_equal(encoder.mean_, expected.mean_)


# -- missing values ------------------------------------------------------------------------------


def write_clusters(path: Path, rows: int, seed: int, gap: str | None = None) -> Path:
    """Write two clusters; with `gap`, 2 % of the values of each column are this string."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=rows)
    X = rng.normal(size=(rows, 6)) + 1.2 * labels[:, None]
    values = np.array([[f"{x:.4f}" for x in row] for row in X], dtype=object)
    if gap is not None:
        values[rng.random(values.shape) < 0.02] = gap
    lines = [",".join([*row, f"c{y}"]) for row, y in zip(values, labels, strict=True)]
    path.write_text("\n".join(["a,b,c,d,e,f,label", *lines]) + "\n")
    return path


@pytest.mark.parametrize("gap", ["NA", "?", "null", "#N/A"])
def test_gaps_cost_less_than_a_point(gap: str, tmp_path: Path) -> None:
    test = write_clusters(tmp_path / "test.csv", 4000, 1)
    errors = []
    for marked in (None, gap):
        path = write_clusters(tmp_path / "train.csv", 1000, 0, marked)
        model = tmp_path / f"{marked is None}.mwz"
        result = train(path, model)
        assert (result.exit_code, result.stderr) == (0, "")
        assert set(load(model)[0].kinds_) == {"numeric"}
        errors.append(done("test", model, test)["error"])
    assert errors[0] < 0.2
    assert abs(errors[0] - errors[1]) < 0.01


@pytest.mark.parametrize("header", ["a,b,who,label", ""])
def test_groups_are_read_like_those_of_train(header: str, tmp_path: Path) -> None:
    """`continue` and `forget` repeat neither --groups, --missing nor --no-header."""
    path, model = tmp_path / "x.csv", tmp_path / "model.mwz"
    second = ["unknown" if k % 4 == 0 else str(k % 3) for k in range(24)]
    rows = [f"{k % 5 + k / 10},{second[k]},g{k % 6},{k % 2}" for k in range(24)]
    path.write_text("\n".join([header, *rows]) + "\n")
    name = "who" if header else "x2"
    options = ["--estimator", "ExactSVC", "--groups", name, "--missing", "unknown"]
    result = train(path, model, *options, *([] if header else ["--no-header"]))
    assert result.exit_code == 0, result.output
    assert load(model)[0].kinds_ == ["numeric", "numeric", "dropped"]
    done("continue", model, path, "--force")
    (tmp_path / "groups").write_text("g1\n")
    done("forget", model, "--groups", tmp_path / "groups")
    assert len(load(model)[-1].ids_) == 2 * 24 - 8
    assert done("test", model, path)["rows"] == 24


def test_groups_of_a_model_of_arrays_must_be_named(tmp_path: Path) -> None:
    rows = [[k % 5, k % 3] for k in range(12)]
    model = ExactSVC(C=1, gamma=1.0).fit(rows, [0, 1] * 6, groups=["g1", "g2"] * 6)
    save(model, tmp_path / "model.mwz")
    (tmp_path / "x.svm").write_text("0 1:1 2:3\n1 1:2 2:1\n")
    result = call("continue", tmp_path / "model.mwz", tmp_path / "x.svm", tmp_path / "more.mwz")
    assert result.exit_code == 1
    assert "expected a group for each new row. Name the column by --groups" in result.stderr


def test_columns_that_a_model_does_not_use_may_be_absent(tmp_path: Path) -> None:
    path, model = tmp_path / "x.csv", tmp_path / "model.mwz"
    columns = {"a": NUMBERS, "site": ["x"] * ROWS, "who": list("abcd") * 6, "label": LABELS}
    path.write_text(text_of(columns))
    assert train(path, model, "--drop", "who").exit_code == 0
    del columns["site"], columns["who"]
    path.write_text(text_of(columns))
    assert done("test", model, path)["rows"] == ROWS
    path.write_text(text_of({"site": columns["label"], "label": LABELS}))
    assert "column 'a' is missing; the data has 'site', 'label'" in call("test", model, path).stderr
