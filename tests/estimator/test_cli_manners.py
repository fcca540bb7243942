"""The command's manners: exit codes, messages, signals, pipes, and files that stay whole."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from marginwise import OnlineSVC, load, save
from marginwise.cli import main
from tests.support import runner

pytest.importorskip("pyarrow")

ROWS = 70_000  # several chunks of a long run
LONG = ["--no-tune", "-c", "1", "-g", "0.2", "--epochs", "2", "--threads", "1"]


def call(*arguments: object, text: str | None = None) -> Result:
    return runner().invoke(main, [str(argument) for argument in arguments], input=text)


def refused(*arguments: object, code: int = 1, folder: Path | None = None) -> str:
    """Run a command that must be refused in one line, and change no file; return the line."""
    before = contents(folder)
    done = call(*arguments)
    assert done.exit_code == code, done.output
    assert contents(folder) == before
    assert done.stdout == ""
    if code == 1:
        lines = [line for line in done.stderr.splitlines() if "error:" in line]
        assert lines == [done.stderr.splitlines()[-1]]
        assert lines[0].startswith("marginwise: error: ")
        assert "Traceback" not in done.stderr
        return lines[0]
    return done.stderr


def contents(folder: Path | None) -> dict[str, bytes]:
    files = [] if folder is None else [path for path in folder.iterdir() if path.is_file()]
    return {path.name: path.read_bytes() for path in files}


def arrays(path: Path, rows: int = 60, features: int = 3) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    np.savez(path, X=X, y=(X[:, 0] > 0).astype(int))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model of three features without names."""
    folder = tmp_path_factory.mktemp("model")
    with np.load(arrays(folder / "data.npz")) as data:
        save(OnlineSVC(gamma=1.0, random_state=0).fit(data["X"], data["y"]), folder / "m.mwz")
    return folder / "m.mwz"


@pytest.fixture(scope="module")
def table_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model of the columns size and colour."""
    folder = tmp_path_factory.mktemp("table")
    rows = [f"{k},{'red' if k % 3 else 'blue'},{'yes' if k > 20 else 'no'}" for k in range(41)]
    (folder / "data.csv").write_text("size,colour,label\n" + "\n".join(rows) + "\n")
    given = ["--unseen", "error", "--numeric", "size", "-c", "1", "-q"]
    done = call("train", folder / "data.csv", folder / "m.mwz", *given)
    assert done.exit_code == 0, done.output
    return folder / "m.mwz"


# -- bad input -------------------------------------------------------------------------------------

SVMLIGHT = {
    "unsorted": ("1 2:1 1:1\n-1 1:1\n", ":1:"),
    "zero in one-based": ("1 1:1\n-1 0:1\n", ":2:"),
    "no number": ("1 1:a\n-1 1:1\n", ":1:"),
    "too large": ("1 1:1\n-1 1:1e39\n", ":2:"),
    "no label": ("1 1:1\n1:1 2:1\n", ":2:"),
    "one class": ("1 1:1\n1 1:2\n", ""),
}


@pytest.mark.parametrize("case", SVMLIGHT)
def test_bad_svmlight_text(case: str, tmp_path: Path) -> None:
    text, place = SVMLIGHT[case]
    (tmp_path / "bad.svm").write_text(text)
    said = refused("train", tmp_path / "bad.svm", tmp_path / "m.mwz", folder=tmp_path)
    assert f"bad.svm{place}" in said
    assert ("--zero-based" in said) == (case == "zero in one-based")


TABLES = {
    "empty": (b"", "the file is empty"),
    "header only": (b"a,b,label\n", "no rows"),
    "one class": (b"a,b,label\n1,2,x\n2,3,x\n", "at least two classes"),
    "mixed counts": (b"a,b,label\n1,2,x\n2,y\n", ":3:"),
    "header that lies": (b"a,label\n1,2,x\n2,3,y\n", ":2:"),
    "label is missing": (b"a,b,label\n1,2,x\n2,3,\n3,1,y\n", "the label is missing"),
    "truncated gz": (gzip.compress(b"a,label\n" + b"1,x\n2,y\n" * 2000)[:-20], "truncated"),
    "not text": (bytes(range(256)), "not text"),
    "damaged Parquet": (b"PAR1" + bytes(50) + b"PAR1", "damaged"),
    "a zip of nothing": (b"PK\x05\x06" + bytes(18), "X"),
}


@pytest.mark.parametrize("case", TABLES)
def test_bad_tables(case: str, tmp_path: Path) -> None:
    content, words = TABLES[case]
    (tmp_path / "bad").write_bytes(content)
    said = refused("train", tmp_path / "bad", tmp_path / "m.mwz", "-q", folder=tmp_path)
    assert "bad" in said
    assert words in said


def test_labels_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,y\n")
    said = refused("train", tmp_path / "a.csv", tmp_path / "m", "--label", "c", folder=tmp_path)
    assert "'c'" in said
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)))
    said = refused("train", tmp_path / "a.npz", tmp_path / "m", folder=tmp_path)
    assert "label" in said or "y" in said


def test_files_that_are_not_there(model: Path, tmp_path: Path) -> None:
    assert "none.csv" in refused("train", tmp_path / "none.csv", tmp_path / "m", folder=tmp_path)
    assert "none*" in refused("train", tmp_path / "none*", tmp_path / "m", folder=tmp_path)
    assert "none.mwz" in refused("test", tmp_path / "none.mwz", tmp_path / "none.csv")
    assert "No such file" in refused("info", tmp_path / "none")
    assert "there is no directory" in refused("train", model, tmp_path / "no" / "m")


def test_models_that_are_none(tmp_path: Path) -> None:
    data = arrays(tmp_path / "a.npz")
    for content in (b"", b"no model", b"PK\x03\x04 and no more"):
        (tmp_path / "m.mwz").write_bytes(content)
        said = refused("predict", tmp_path / "m.mwz", data, tmp_path / "out", folder=tmp_path)
        assert "m.mwz cannot be loaded" in said
    assert "a.npz cannot be loaded" in refused("predict", data, data)


def test_other_features_than_the_model_has(model: Path, tmp_path: Path) -> None:
    data = arrays(tmp_path / "four.npz", features=4)
    said = refused("predict", model, data, tmp_path / "out", folder=tmp_path)
    assert "4 features" in said
    assert "3 features" in said
    (tmp_path / "four.svm").write_text("1 1:1 4:1\n")
    said = refused("test", model, tmp_path / "four.svm", folder=tmp_path)
    assert "four.svm:1:" in said
    (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n")
    assert "without names" in refused("predict", model, tmp_path / "a.csv")


def test_other_columns_than_the_model_has(table_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "a.csv").write_text("length,colour\n1,red\n")
    said = refused("predict", table_model, tmp_path / "a.csv", out, folder=tmp_path)
    assert "column 'size' is missing" in said
    assert "colour" in said
    data = arrays(tmp_path / "a.npz")
    assert "needs the columns size, colour" in refused("predict", table_model, data, out)


def test_unseen_categories_follow_the_policy(table_model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("size,colour\n1,red\n2,green\n")
    said = refused("predict", table_model, tmp_path / "a.csv", tmp_path / "o", folder=tmp_path)
    assert "a.csv:3: column 'colour': the category 'green'" in said


def test_an_error_in_the_middle_leaves_no_output(model: Path, tmp_path: Path) -> None:
    rows = ["1 1:1 2:2"] * 10_000
    (tmp_path / "a.svm").write_text("\n".join([*rows, "1 1:x"]) + "\n")
    said = refused("predict", model, tmp_path / "a.svm", tmp_path / "out", folder=tmp_path)
    assert "a.svm:10001:" in said


def test_nothing_is_overwritten_without_force(model: Path, tmp_path: Path) -> None:
    data = arrays(tmp_path / "a.npz")
    (tmp_path / "mine").write_text("mine")
    for arguments in (
        ["train", data, tmp_path / "mine"],
        ["train", data, tmp_path / "new", "--checkpoint", tmp_path / "mine"],
        ["predict", model, data, tmp_path / "mine"],
        ["tune", data, "--out", tmp_path / "mine"],
        ["active", data, "--out", tmp_path / "mine"],
        ["export", model, tmp_path / "mine", "--format", "json"],
        ["import", data, tmp_path / "mine"],
        ["forget", model, "--ids", data, "--receipt", tmp_path / "mine"],
    ):
        assert "exists and is kept" in refused(*arguments, folder=tmp_path)
    assert call("predict", model, data, tmp_path / "mine", "--force", "-q").exit_code == 0
    assert len((tmp_path / "mine").read_text().splitlines()) == 60


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-c", "-1"], "C must be a number above 0"),
        (["--gamma", "much"], "gamma must be"),
        (["-t", "7"], "0 linear, 1 poly, 2 rbf, 3 sigmoid"),
        (["--nu", "0.5"], "--nu is not a parameter of OnlineSVC, but of ExactOneClassSVM"),
        (["--estimator", "SVC"], "'SVC' is not one of"),
        (["--every", "soon"], "such as 90, 60s, 10m or 1h"),
        (["--cv", "1"], "not in the range"),
        (["--Cs", "a,b"], "0.1,1,10"),
        (["--colour", "red"], "No such option"),
        (["--threads", "0"], "n_jobs must be"),
        (["--checkpoint", "-"], "not standard output"),
    ],
)
def test_wrong_options_end_with_code_2(options: list[str], said: str, tmp_path: Path) -> None:
    data = arrays(tmp_path / "a.npz")
    shown = refused("train", data, tmp_path / "m", *options, code=2, folder=tmp_path)
    assert said in " ".join(shown.split())


def test_estimators_without_groups_refuse_them(tmp_path: Path) -> None:
    """Options are checked before data are read, and before anything is replaced."""
    (tmp_path / "mine").write_text("mine")
    given = ["train", tmp_path / "none.csv", tmp_path / "m", "--groups", "who"]
    said = refused(*given, "--checkpoint", tmp_path / "mine", "--force", code=2, folder=tmp_path)
    assert "OnlineSVC does not store groups" in said
    said = refused(*given, "--estimator", "ExactSVC", "--stream", code=2, folder=tmp_path)
    assert "--groups is not available with --stream" in said


# -- reports ---------------------------------------------------------------------------------------


def test_runs_print_versions_and_parameters(tmp_path: Path) -> None:
    data = arrays(tmp_path / "a.npz")
    done = call("train", data, tmp_path / "m", "-c", "3", "--json")
    assert json.loads(done.stdout)["C"] == 3
    lines = done.stderr.splitlines()
    assert lines[0].startswith("marginwise: marginwise ")
    assert "numpy" in lines[0]
    assert lines[1] == f"marginwise: marginwise train {data} {tmp_path / 'm'} -c 3 --json"
    assert any("OnlineSVC(C=3" in line for line in lines)
    assert call("test", tmp_path / "m", data, "--json", "--quiet").stderr == ""


@pytest.mark.slow
def test_warnings_are_single_lines(tmp_path: Path) -> None:
    rows = [f"id-{k},{k % 7},{k % 2}" for k in range(200)]
    (tmp_path / "a.csv").write_text("key,n,label\n" + "\n".join(rows) + "\n")
    done = run("train", tmp_path / "a.csv", tmp_path / "m", "-c", "1", "--quiet")
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("marginwise: warning: ")
    assert "'key'" in line


# -- processes -------------------------------------------------------------------------------------


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "marginwise", *map(str, arguments)]


def run(*arguments: object, **given: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, **given)


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with data that take some chunks to learn, and the model of a whole run."""
    folder = tmp_path_factory.mktemp("long")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 4)).astype(np.float32)
    np.savez(folder / "data.npz", X=X, y=(X[:, 0] + np.sin(X[:, 1]) > 0).astype(int))
    given = ["--checkpoint", folder / "whole.ckpt", "--every", "1h", "-q"]
    done = call("train", folder / "data.npz", folder / "whole.mwz", *LONG, *given)
    assert done.exit_code == 0, done.output
    return folder


def started(folder: Path, tmp_path: Path, *options: object) -> subprocess.Popen[str]:
    """Start a run, and wait for its first checkpoint."""
    file = tmp_path / "run.ckpt"
    given = ["train", folder / "data.npz", tmp_path / "m.mwz", "--checkpoint", file, *LONG]
    process = subprocess.Popen(
        command(*given, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not file.exists() and process.poll() is None:
        time.sleep(0.002)
    return process


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_killed_runs_continue_to_the_same_file(long_run: Path, tmp_path: Path) -> None:
    process = started(long_run, tmp_path, "--every", "0s")
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "m.mwz").exists()
    with_note = call("info", tmp_path / "run.ckpt", "--json")
    assert json.loads(with_note.stdout)["epoch"] < 2
    done = call("continue", tmp_path / "run.ckpt", "-q")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "m.mwz").read_bytes() == (long_run / "whole.mwz").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_write_a_checkpoint(number: int, long_run: Path, tmp_path: Path) -> None:
    process = started(long_run, tmp_path, "--every", "0s")
    process.send_signal(number)
    out, error = process.communicate()
    assert process.returncode == 130, error
    assert out == ""
    assert "marginwise continue" in error.splitlines()[-1]
    assert not (tmp_path / "m.mwz").exists()
    done = call("continue", tmp_path / "run.ckpt", tmp_path / "other.mwz", "-q")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "other.mwz").read_bytes() == (long_run / "whole.mwz").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("method", ["make_context", "parse_args", "resolve_command"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_before_a_command_begins_exit_with_130(
    monkeypatch: pytest.MonkeyPatch, method: str, number: int
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr(type(main), method, stopped)
    assert call("bench").exit_code == 130


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_signals_end_other_commands_at_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("bench", "--rows", "2000000", "--features", "8"),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()  # of the versions: the command runs
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, "Traceback" in error) == ("", False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_readers_may_leave(model: Path, tmp_path: Path) -> None:
    data = arrays(tmp_path / "a.npz", rows=200_000)
    read, write = os.pipe()
    with os.fdopen(write, "wb") as pipe:
        process = subprocess.Popen(
            command("predict", model, data, "-q"), stdout=pipe, stderr=subprocess.PIPE, text=True
        )
    with os.fdopen(read, "rb") as pipe:
        pipe.readline()
    _, error = process.communicate(timeout=60)
    assert error == ""
    assert process.returncode == 1


@pytest.mark.slow
def test_predictions_pass_through_pipes(model: Path, tmp_path: Path) -> None:
    data = arrays(tmp_path / "a.npz")
    done = subprocess.run(
        command("predict", model, "-", "-", "-q"), input=data.read_bytes(), capture_output=True
    )
    with np.load(data) as content:
        expected = load(model).predict(content["X"])
    assert done.stdout.decode().split() == [str(label) for label in expected]
    assert done.stderr == b""
