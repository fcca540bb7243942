"""The command on what its users did not read about: wrong models, pipes, groups, odd files."""

from __future__ import annotations

import errno
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise import OnlineSVC, load, save
from marginwise._files.format import guarded, unpack, write_state
from marginwise._training.checkpoint import KIND
from marginwise.cli import group, main
from marginwise.data import TableEncoder, open_source
from tests.estimator.test_cli_manners import arrays, call, refused
from tests.support import runner

pytest.importorskip("pyarrow")

FAST = ("-c", "1", "-g", "0.5", "-q")


def csv(path: Path, rows: int = 40) -> Path:
    """A table with labels in the middle and customers in the last column."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows).round(3)
    lines = [
        f"{v},{'yes' if v > 0 else 'no'},{w},c{k % 5}"
        for k, (v, w) in enumerate(zip(x, rng.choice(["red", "blue"], rows), strict=True))
    ]
    path.write_text("\n".join(["size,bought,color,customer", *lines]) + "\n")
    return path


def test_wrong_estimator_cannot_forget_and_leaves_no_log(tmp_path: Path) -> None:
    model, gone = tmp_path / "model.mwz", tmp_path / "gone.txt"
    save(OnlineSVC().fit([[0.0], [1.0]], [0, 1]), model)
    gone.write_text("ann\n")
    line = refused("forget", model, "--groups", gone, folder=tmp_path)
    assert "cannot be removed from a OnlineSVC" in line


def test_model_on_standard_output_and_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = arrays(tmp_path / "data.npz")
    assert call("train", data, "model.mwz", *FAST).exit_code == 0
    done = call("train", data, "-", *FAST)
    content = done.stdout_bytes
    assert content == Path("model.mwz").read_bytes()
    tested = runner().invoke(main, ["test", "-", str(data), "--json", "-q"], input=content)
    assert tested.stdout == call("test", "model.mwz", data, "--json", "-q").stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "model.mwz"]


def test_continue_by_standard_input_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = csv(tmp_path / "data.csv")
    given = ("--label", "bought", "--groups", "customer")
    assert call("train", data, "a.mwz", "--estimator", "ExactSVC", *given, *FAST).exit_code == 0
    assert call("continue", "a.mwz", data, "b.mwz", *given, "-q").exit_code == 0
    piped = ["continue", "-", str(data), *given, "-q"]
    done = runner().invoke(main, piped, input=Path("a.mwz").read_bytes())
    assert done.stdout_bytes == Path("b.mwz").read_bytes()
    done = call("continue", "a.mwz", "-", "c.mwz", *given, "--json", text=data.read_text())
    assert json.loads(done.stdout)["rows"] == 40
    assert Path("c.mwz").read_bytes() == Path("b.mwz").read_bytes()


def test_checkpoint_of_a_model_on_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("train", arrays(tmp_path / "data.npz"), "-", "--checkpoint", "run.ckpt", *FAST)
    again = call("continue", "run.ckpt", "--threads", "1", "-q")
    assert again.stdout_bytes == done.stdout_bytes != b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "run.ckpt"]
    for flags in (["--groups", "customer"], ["--json"], ["--threads", "0"]):
        assert "Error: " in refused("continue", "run.ckpt", *flags, code=2, folder=tmp_path)
    piped = runner().invoke(main, ["continue", "-"], input=Path("run.ckpt").read_bytes())
    assert piped.exit_code == 2
    assert "a checkpoint is a file, not standard input" in piped.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "data.npz", "-", "--json"),
        ("train", "data.npz", "model.mwz", "--checkpoint", "-"),
        ("train", "data.npz", "model.mwz", "--seed", "-1"),
        ("train", "data.npz", "m.mwz", "--estimator", "ExactOneClassSVM", "--checkpoint", "c"),
        ("tune", "data.npz", "--out", "-", "--json"),
        ("active", "data.npz", "--out", "-", "--json"),
        ("test", "-", "-"),
        ("predict", "-", "-"),
    ],
)
def test_options_that_contradict_each_other(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arrays(tmp_path / "data.npz")
    assert "Error: " in refused(*arguments, code=2, folder=tmp_path)


@pytest.mark.parametrize("flag", [("--stream",), ("--checkpoint", "run.ckpt")])
def test_groups_are_not_dropped_from_a_long_run(
    flag: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = csv(tmp_path / "data.csv")
    exact = ("--estimator", "ExactSVC", "--groups", "customer", "--label", "bought", *FAST)
    line = refused("train", data, "model.mwz", *exact, *flag, code=2, folder=tmp_path)
    assert "--groups is not available with" in line
    assert "it needs all rows in memory" in line


def test_messages_name_standard_input_and_options() -> None:
    done = call("train", "-", "model.mwz", text="1 0:1\n0 0:2\n")
    assert done.exit_code == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("marginwise: error: standard input:1: column 3: index 0")
    assert "--zero-based" in last


def test_advice_that_is_translated_is_still_given() -> None:
    package = Path(group.__file__).parents[1]
    sources = [path for path in package.rglob("*.py") if path.name != "group.py"]
    words = re.sub(r'"\s*f?"', "", "".join(path.read_text() for path in sources))
    native = [p.read_text() for p in Path(__file__).parents[2].joinpath("cpp").rglob("*.[ch]pp")]
    words += re.sub(r'"\s*"', "", "".join(native))
    for advice in group.IN_PYTHON:
        assert advice in words


def test_labels_of_npy_are_ignored_by_predict(tmp_path: Path) -> None:
    data, model = tmp_path / "data.npy", tmp_path / "model.mwz"
    X = np.random.default_rng(0).normal(size=(40, 3))
    np.save(data, np.c_[X, X[:, 0] > 0])
    assert call("train", data, model, *FAST).exit_code == 0
    labels = call("predict", model, data, "-q").stdout
    assert labels.split() == [str(label) for label in load(model).predict(X).tolist()]
    np.save(data, X[:, :2])
    assert "has 2 features, but the model was trained on 3 features" in refused(
        "predict", model, data
    )


def test_label_column_of_npy_on_standard_input(tmp_path: Path) -> None:
    data, model = tmp_path / "data.npy", tmp_path / "model.mwz"
    X = np.random.default_rng(0).normal(size=(40, 3))
    np.save(data, np.c_[X[:, 0] > 0, X])
    arguments = ["train", "-", str(model), "--label", "0", *FAST]
    assert runner().invoke(main, arguments, input=data.read_bytes()).exit_code == 0
    assert load(model).n_features_in_ == 3


def test_columns_and_labels_that_are_missing(tmp_path: Path) -> None:
    data, model = csv(tmp_path / "data.csv"), tmp_path / "model.mwz"
    assert call("train", data, model, "--label", "bought", *FAST).exit_code == 0
    other = tmp_path / "other.csv"
    other.write_text(data.read_text().replace("size", "length", 1))
    assert "column 'size' is missing" in refused("test", model, other)
    lines = [line.split(",") for line in data.read_text().splitlines()]
    other.write_text("\n".join(",".join([a, c, d]) for a, _, c, d in lines) + "\n")
    assert "has no labels" in refused("test", model, other)
    assert call("predict", model, other, "-q").stdout == call("predict", model, data, "-q").stdout


def test_pattern_that_matches_folders_only(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "no file matches" in refused("train", tmp_path / "f*", tmp_path / "model.mwz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.25 1:1\n0.75 1:2\n1.5 1:3\n", "the label 0.25 is not a class; expected integers"),
        (f"{2**62} 1:1\n{2**62 + 1} 1:2\n", "the label 4.61169e+18 is not a class"),
        ("a,y\n1,0.5\n2,1.5\n", "Name the column of the label by --label."),
        ("1,2,0\n2,3,1\n", "If the file has no header, pass --no-header."),
        ("a,y\n1,0\n1,1\n", "Use --numeric, --categorical or --text."),
        ('[{"a": 1, "y": 0}]', ":1: the file is a JSON array; expected a JSON object per line."),
    ],
)
def test_files_that_are_mistaken(text: str, message: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text(text)
    line = refused("train", data, tmp_path / "model.mwz", folder=tmp_path)
    assert str(data) in line
    assert message in line


def test_arrays_with_missing_values_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", X=np.full((20, 2), np.nan), y=np.arange(20) % 2)
    line = refused("train", tmp_path / "data.npz", tmp_path / "model.mwz", folder=tmp_path)
    assert line.endswith(
        "data.npz: the features contain nan; expected finite numbers. Impute or drop the rows."
    )


def test_labels_with_line_breaks_are_not_written_one_per_line(tmp_path: Path) -> None:
    data, model = tmp_path / "data.csv", tmp_path / "model.mwz"
    labels = ["one", '"two\nlines"']
    rows = [f"{k % 2},{k % 3},{labels[k % 2]}" for k in range(20)]
    data.write_text("\n".join(["a,b,y", *rows]) + "\n")
    assert call("train", data, model, *FAST).exit_code == 0
    assert "use --scores" in refused("predict", model, data)
    assert call("predict", model, data, "--scores", "-q").stdout.count('"two\nlines"') == 10
    assert len(call("test", model, data, "-q").stdout.splitlines()) == 5


def test_wide_tables_do_not_list_their_columns_for_every_column() -> None:
    pa = pytest.importorskip("pyarrow")
    table = Listed({f"x{k}": [0.5, 1.0, k] for k in range(50)}, pa)
    encoder = TableEncoder().fit(table.table)
    assert encoder._parts(table)[0].shape == (3, 1)
    assert table.listed <= 2


@pytest.mark.slow
@pytest.mark.parametrize("bad", [None, 5, -1, 1e300, True, "x", [], [1], {"a": 1}])
def test_notes_of_checkpoints_are_checked(bad: Any, tmp_path: Path) -> None:
    data, model, checkpoint = tmp_path / "a.npz", tmp_path / "m.mwz", tmp_path / "c"
    assert call("train", arrays(data), model, "--checkpoint", checkpoint, *FAST).exit_code == 0
    expected = model.read_bytes()
    _, state = guarded(checkpoint, lambda content: unpack(content, [KIND]))
    job = json.loads(state["note"]["job"])
    places = [(key,) for key in job] + [
        (key, inner) for key, value in job.items() if isinstance(value, dict) for inner in value
    ]
    for place in places:
        changed = json.loads(json.dumps(job))
        inner = changed if len(place) == 1 else changed[place[0]]
        inner[place[-1]] = bad
        write_state(checkpoint, KIND, state | {"note": {"job": json.dumps(changed)}})
        done = call("continue", checkpoint, tmp_path / "again.mwz", "--force", "-q")
        assert done.exit_code in (0, 1), (place, done.output, done.exception)
        assert done.exit_code == 0 or "marginwise: error: " in done.stderr
        if done.exit_code == 0:
            assert (tmp_path / "again.mwz").read_bytes() == expected
        assert call("info", checkpoint, "-q").exit_code == 0
    for note in ({"job": bad}, {"job": json.dumps(bad)}, {"job": json.dumps(job), "steps": bad}):
        write_state(checkpoint, KIND, state | {"note": note})
        line = refused("continue", checkpoint, "--force", "-q")
        assert "is not a checkpoint of the command train" in line
        assert call("info", checkpoint, "-q").exit_code == 0


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_full_disk_does_not_cost_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, model, checkpoint = tmp_path / "a.npz", tmp_path / "m.mwz", tmp_path / "c"
    arrays(data)
    assert call("train", data, model, "--stream", *FAST).exit_code == 0
    expected = model.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("marginwise._training.checkpoint.write_state", full)
    done = call("train", data, model, "--checkpoint", checkpoint, "--force", *FAST)
    assert done.exit_code == 0
    assert "the last checkpoint" in done.stderr
    assert model.read_bytes() == expected
    monkeypatch.setattr("os.fsync", full)
    line = refused("train", data, tmp_path / "other.mwz", *FAST, folder=tmp_path)
    assert line.endswith("other.mwz: No space left on device.")


def test_signals_that_are_only_noted_do_not_end_the_reading_of_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pyarrow gives up reading at a signal, even if the handler of the signal returns.
    pa, reader = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.csv")
    data = csv(tmp_path / "data.csv")
    expected = open_source(data, label="bought").load()
    read, calls = reader.read_csv, []

    def cancelled(*given: Any, **more: Any) -> Any:
        calls.append(given)
        if len(calls) % 2:
            raise pa.ArrowCancelled("Operation cancelled", 15)
        return read(*given, **more)

    monkeypatch.setattr(reader, "read_csv", cancelled)
    again = open_source(data, label="bought").load()
    assert len(calls) >= 2
    np.testing.assert_array_equal(again[0], expected[0])
    np.testing.assert_array_equal(again[1], expected[1])


class Listed:
    """A table that counts how often its columns are listed, which takes time for all of them."""

    def __init__(self, columns: dict[str, list[float]], pa: Any) -> None:
        self.table, self.listed = pa.table(columns), 0
        self.num_rows = self.table.num_rows

    @property
    def column_names(self) -> list[str]:
        self.listed += 1
        return list(self.table.column_names)

    def __getitem__(self, name: str) -> Any:
        return self.table[name]


def damaged(path: Path, how: str) -> Path:
    """Write an archive with a model document that cannot be read."""
    text = "[" * 200_000 if how == "nested" else '{"class": "OnlineSVC"}' * 20
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", text)
    data = bytearray(path.read_bytes())
    if how == "compressed wrongly":
        data[30 + len("model.json")] = 0xFF
    if how == "encrypted":
        for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.index(mark) + at] |= 1
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("how", ["compressed wrongly", "encrypted", "nested"])
def test_archives_that_cannot_be_read_are_refused(how: str, tmp_path: Path) -> None:
    path = damaged(tmp_path / "m.mwz", how)
    for command in (("info", path), ("continue", path, csv(tmp_path / "t.csv"))):
        message = refused(*command)
        assert str(path) in message
        assert "Traceback" not in message


def test_a_holdout_of_all_rows_is_refused(tmp_path: Path) -> None:
    table = csv(tmp_path / "t.csv", rows=30)
    simulate = ("simulate", table, "--text-column", "color")  # texts of two kinds are two items
    for command, items in ((("active", table), 30), (simulate, 2)):
        message = refused(*command, "--label", "bought", "--holdout", "0.99")
        assert f"--holdout 0.99 sets aside all {items} rows" in message
