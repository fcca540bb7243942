"""Scoring on Dask: every file once, complete or absent, and what is bad is named."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from marginwise import OnlineSVC, save
from marginwise.cli import main
from marginwise.data import TableEncoder, write_svmlight

pa = pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")
from pyarrow import parquet  # noqa: E402

from marginwise.dask import (  # noqa: E402
    ScoringError,
    clients,
    connected,
    predict_files,
    scoring_tasks,
    versions,
)
from marginwise.dask.scoring import output_name  # noqa: E402
from marginwise.dask.scoring_records import NAME  # noqa: E402
from marginwise.data.arrow_file import ParquetFile  # noqa: E402
from tests.support import runner  # noqa: E402

pytestmark = pytest.mark.cluster
NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    return X, np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")


def table(X: np.ndarray) -> Any:
    return pa.table({name: X[:, k] for k, name in enumerate(NAMES)})


@pytest.fixture(scope="module")
def model() -> Any:
    """Return a model that reads tables."""
    X, y = rows(300, 0)
    return make_pipeline(TableEncoder(), OnlineSVC(C=10, gamma=0.5)).fit(table(X), y)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Write five files of a few row groups each."""
    folder = tmp_path / "data"
    folder.mkdir()
    for k in range(5):
        parquet.write_table(table(rows(500, k)[0]), folder / f"p{k}.parquet", row_group_size=200)
    return folder


def labels(path: Path) -> list[Any]:
    return parquet.read_table(path)["label"].to_pylist()


# -- what is written -------------------------------------------------------------------------------


def test_outputs_are_the_predictions_in_order(
    client: Any, model: Any, data: Path, tmp_path: Path
) -> None:
    report = predict_files(model, f"{data}/*.parquet", tmp_path / "out", client=client, scores=True)
    assert (len(report.written), report.skipped, report.rows) == (5, [], 2500)
    for k in range(5):
        X = table(rows(500, k)[0])
        found = parquet.read_table(tmp_path / "out" / f"p{k}.parquet")
        assert found.column_names == ["label", "score"]
        assert found["label"].to_pylist() == model.predict(X).tolist()
        assert np.array_equal(found["score"].to_numpy(), model.decision_function(X))


def test_formats_and_classes(client: Any, tmp_path: Path) -> None:
    X, _ = rows(90, 0)
    y = np.arange(90) % 3
    fitted = OnlineSVC(gamma=1.0, calibration="sigmoid").fit(X, y)
    folder = tmp_path / "in"
    folder.mkdir()
    write_svmlight(X, y, folder / "one.svm")
    np.save(folder / "two.npy", X)
    out = tmp_path / "out"
    predict_files(fitted, folder, out, client=client, scores=True, proba=True)
    for name in ("one", "two"):
        lines = (out / f"{name}.csv").read_text().splitlines()
        assert lines[0] == "label,score_0,score_1,score_2,p_0,p_1,p_2"
        assert [int(line.split(",")[0]) for line in lines[1:]] == fitted.predict(X).tolist()


def test_models_without_an_encoder_find_columns_by_name(client: Any, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y = rows(200, 0)
    fitted = OnlineSVC(gamma=0.5).fit(pd.DataFrame(X, columns=NAMES), y)
    mixed = table(X).select(["c", "a", "b"]).append_column("other", pa.array(["x"] * 200))
    parquet.write_table(mixed, tmp_path / "mixed.parquet")
    predict_files(fitted, tmp_path / "mixed.parquet", tmp_path / "out", client=client)
    expected = fitted.predict(pd.DataFrame(X, columns=NAMES)).tolist()
    assert labels(tmp_path / "out" / "mixed.parquet") == expected
    assert fitted.feature_names_in_.tolist() == NAMES, "the caller's model is not changed"
    assert fitted.n_jobs is None
    parquet.write_table(table(X).drop_columns(["b"]), tmp_path / "fewer.parquet")
    with pytest.raises(ScoringError, match=r"fewer\.parquet: column 'b' is missing"):
        predict_files(fitted, tmp_path / "fewer.parquet", tmp_path / "out", client=client)


def test_models_of_columns_refuse_text_and_unfitted_models(client: Any, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y = rows(100, 0)
    (tmp_path / "new.csv").write_text("a,b,c\n0.1,0.2,0.3\n")
    fitted = OnlineSVC(gamma=0.5).fit(pd.DataFrame(X, columns=NAMES), y)
    with pytest.raises(ScoringError, match="table of text, but the model was trained on columns"):
        predict_files(fitted, tmp_path / "new.csv", tmp_path / "out", client=client)
    with pytest.raises(NotFittedError):
        predict_files(OnlineSVC(), tmp_path / "new.csv", tmp_path / "other", client=client)
    assert not (tmp_path / "other").exists()


def test_outputs_of_links_have_the_names_of_the_links(
    client: Any, model: Any, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "day.parquet").symlink_to(data / "p0.parquet")
    report = predict_files(model, tmp_path / "links", tmp_path / "out", client=client)
    assert [Path(path).name for path in report.written] == ["day.parquet"]
    again = predict_files(model, tmp_path / "links", tmp_path / "out", client=client)
    assert again.skipped == report.written


def test_models_of_arrays_read_as_many_columns(client: Any, tmp_path: Path) -> None:
    X, y = rows(100, 0)
    holes = X.copy()
    holes[7, 1] = np.nan
    parquet.write_table(table(X), tmp_path / "x.parquet")
    parquet.write_table(table(holes), tmp_path / "holes.parquet")
    parquet.write_table(table(X).drop_columns(["b"]), tmp_path / "fewer.parquet")
    fitted, out = OnlineSVC(gamma=0.5).fit(X, y), tmp_path / "out"
    with pytest.raises(ScoringError) as caught:
        predict_files(fitted, f"{tmp_path}/*.parquet", out, client=client)
    assert labels(out / "x.parquet") == fitted.predict(X).tolist()
    failed = {Path(path).stem: fault for path, fault in caught.value.report.failed.items()}
    assert "row 7, column 'b': the value is missing" in failed["holes"]
    assert "has 2 features, but the model was trained on 3" in failed["fewer"]
    imputing = make_pipeline(SimpleImputer(), fitted)
    imputing[0].fit(X)
    predict_files(imputing, tmp_path / "holes.parquet", out, client=client)
    assert labels(out / "holes.parquet") == imputing.predict(holes).tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.parquet", "a.parquet"),
        ("a.b.PQ", "a.b.parquet"),
        ("a.csv.gz", "a.csv"),
        ("a.svm", "a.csv"),
        ("odd name ü\n.csv", "odd name ü\n.csv"),
        ("part.1", "part.1.csv"),
        ("part", "part.csv"),
    ],
)
def test_names_of_outputs(name: str, expected: str) -> None:
    assert output_name(f"/nowhere/{name}") == expected


# -- once and complete -----------------------------------------------------------------------------


def test_every_row_group_is_read_once_and_the_model_unpacked_once(
    client: Any, model: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[tuple[str, int]] = Counter()
    unpacked: list[int] = []
    block = ParquetFile.block

    def counted(self: ParquetFile, k: int, columns: Any = None) -> Any:
        read[self.path.name, k] += 1
        return block(self, k, columns)

    monkeypatch.setattr(ParquetFile, "block", counted)
    counting = SimpleNamespace(loads=lambda data: unpacked.append(1) or pickle.loads(data))
    monkeypatch.setattr(scoring_tasks, "pickle", counting)
    predict_files(model, data, tmp_path / "out", client=client)
    assert read == {(f"p{k}.parquet", group): 1 for k in range(5) for group in range(3)}
    assert len(unpacked) == 1


def test_a_second_call_skips_what_is_complete(
    client: Any, model: Any, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = predict_files(model, data, out, client=client)
    before = {path: os.stat(path).st_mtime_ns for path in first.written}
    second = predict_files(model, data, out, client=client, n_jobs=2)
    assert (second.written, sorted(second.skipped), second.rows) == ([], sorted(first.written), 0)
    assert {path: os.stat(path).st_mtime_ns for path in first.written} == before
    # A changed input, an output that was removed, and one that was changed.
    parquet.write_table(table(rows(40, 9)[0]), data / "p0.parquet")
    (out / "p1.parquet").unlink()
    (out / "p2.parquet").write_bytes(b"changed")
    third = predict_files(model, data, out, client=client)
    assert sorted(Path(path).stem for path in third.written) == ["p0", "p1", "p2"]
    assert len(labels(out / "p0.parquet")) == 40
    # Other columns, and another model.
    assert len(predict_files(model, data, out, client=client, scores=True).written) == 5
    X, y = rows(300, 1)
    other = make_pipeline(TableEncoder(), OnlineSVC(C=1, gamma=0.5)).fit(table(X), y)
    assert len(predict_files(other, data, out, client=client, scores=True).written) == 5


def test_a_record_that_was_cut_off(client: Any, model: Any, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    predict_files(model, data, out, client=client)
    text = (out / NAME).read_bytes()
    (out / NAME).write_bytes(text[: len(text) - 30])  # the last output is planned, not complete
    assert len(predict_files(model, data, out, client=client).written) == 1
    assert len(predict_files(model, data, out, client=client).skipped) == 5


def test_outputs_of_another_model_do_not_stay_beside_new_ones(
    client: Any, model: Any, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    predict_files(model, data, out, client=client)
    (data / "p3.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ScoringError, match="1 of 5 files could not be scored"):
        predict_files(model, data, out, client=client, scores=True)
    assert sorted(path.stem for path in out.glob("*.parquet")) == ["p0", "p1", "p2", "p4"]
    assert sorted(path.name for path in out.iterdir() if path.suffix == ".tmp") == []


def test_a_worker_that_is_killed_while_it_writes(model: Any, data: Path, tmp_path: Path) -> None:
    out, killed = tmp_path / "out", []
    X, _ = rows(100_000, 0)
    for k in range(4):
        parquet.write_table(table(X), data / f"large{k}.parquet")

    def kill() -> None:
        while not killed:  # temporaries are named by the process that writes them
            for path in out.glob(".mwz-*.tmp"):
                killed.append(int(path.name.split("-")[1]))
                os.kill(killed[0], signal.SIGKILL)
                return
            time.sleep(0.001)

    with connected("local:2") as client:
        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        report = predict_files(model, data, out, client=client)
        killer.join(10)
    assert killed
    assert len(report.written) == 9
    assert report.rows == 5 * 500 + 4 * 100_000
    for k in range(5):
        assert labels(out / f"p{k}.parquet") == model.predict(table(rows(500, k)[0])).tolist()
    expected = model.predict(table(X)).tolist()
    assert all(labels(out / f"large{k}.parquet") == expected for k in range(4))
    assert list(out.glob(".mwz-*")) == []


def test_an_interrupt_leaves_only_complete_files(
    client: Any, model: Any, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def interrupt(report: Any, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_files(model, data, out, client=client, progress=interrupt)
    report = predict_files(model, data, out, client=client)
    assert len(report.skipped) >= 1
    assert len(report.skipped) + len(report.written) == 5
    assert all(len(labels(out / f"p{k}.parquet")) == 500 for k in range(5))


# -- what is refused -------------------------------------------------------------------------------


def test_bad_files_are_named_and_the_others_written(
    client: Any, model: Any, data: Path, tmp_path: Path
) -> None:
    X, _ = rows(500, 0)
    X[333, 2] = np.inf
    parquet.write_table(table(X), data / "p1.parquet", row_group_size=200)
    parquet.write_table(table(X).drop_columns(["c"]), data / "p2.parquet")
    (data / "p3.parquet").write_bytes(b"")
    parquet.write_table(table(X).slice(0, 0), data / "p4.parquet")
    with pytest.raises(ScoringError) as caught:
        predict_files(model, data, tmp_path / "out", client=client)
    failed = {Path(path).stem: fault for path, fault in caught.value.report.failed.items()}
    assert failed.keys() == {"p1", "p2", "p3"}
    assert "p1.parquet: row 333, column 'c'" in failed["p1"]
    assert "column 'c' is missing" in failed["p2"]
    assert "p3.parquet" in failed["p3"]
    assert labels(tmp_path / "out" / "p4.parquet") == []
    assert len(labels(tmp_path / "out" / "p0.parquet")) == 500


def test_inputs_and_folders_that_cannot_be(
    client: Any, model: Any, data: Path, tmp_path: Path
) -> None:
    def refused(inputs: Any, folder: Path, error: type[Exception], match: str) -> None:
        with pytest.raises(error, match=match):
            predict_files(model, inputs, folder, client=client)

    out = tmp_path / "out"
    refused(f"{data}/*.csv", out, FileNotFoundError, "no file matches")
    assert not out.exists()
    (tmp_path / "file").write_text("here")
    refused(data, tmp_path / "file", NotADirectoryError, "is a file; expected a folder")
    refused(data, data, ValueError, "is in the folder of the outputs")
    (tmp_path / "more").mkdir()
    shutil.copy(data / "p0.parquet", tmp_path / "more" / "p0.pq")
    refused([data, tmp_path / "more"], out, ValueError, "would both be written to")
    out.mkdir(exist_ok=True)
    (out / "p2.parquet").write_text("of someone else")
    refused(data, out, FileExistsError, "was not written by an earlier call")
    assert (out / "p2.parquet").read_text() == "of someone else"
    assert len(predict_files(model, data, out, client=client, force=True).written) == 5
    with pytest.raises(ValueError, match="trained without calibration"):
        predict_files(model, data, out, client=client, proba=True)


def test_nothing_is_removed_before_all_outputs_can_be_written(
    client: Any, model: Any, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    predict_files(model, data, out, client=client)
    names = sorted(path.name for path in out.iterdir())
    X, y = rows(300, 1)
    other = make_pipeline(TableEncoder(), OnlineSVC(C=1, gamma=0.5)).fit(table(X), y)
    with pytest.raises(ValueError, match=r"^n_jobs must be an integer other than 0"):
        predict_files(other, data, out, client=client, n_jobs=0)
    assert sorted(path.name for path in out.iterdir()) == names
    last = sorted(out.glob("*.parquet"))[-1]
    last.unlink()
    last.mkdir()
    with pytest.raises(IsADirectoryError, match=f"{last.name}, the output of .* is a folder"):
        predict_files(other, data, out, client=client, force=True)
    assert sorted(path.name for path in out.iterdir()) == names


def test_versions_that_differ(
    client: Any, model: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "installed_version", lambda: "9.9")
    expected = r"the worker inproc.* has marginwise 0.*, but the driver has marginwise 9\.9"
    with pytest.raises(versions.VersionError, match=expected):
        predict_files(model, data, tmp_path / "out", client=client)
    assert not (tmp_path / "out").exists()
    with pytest.raises(versions.VersionError, match=r"but the driver has marginwise 8\.8"):
        versions.check_version("8.8")  # of a worker that came later


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 0.3)
    with (
        pytest.raises(
            ConnectionError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:1'"
        ),
        connected("tcp://127.0.0.1:1"),
    ):
        pass
    with pytest.raises(ValueError, match="has no workers"), connected("local:0"):
        pass


# -- the command -----------------------------------------------------------------------------------


def run(*words: object) -> Result:
    return runner().invoke(main, list(map(str, words)))


def test_the_command(client: Any, model: Any, data: Path, tmp_path: Path) -> None:
    save(model, tmp_path / "m.mwz")
    # In one process, an address of the kind inproc:// connects to the workers of the fixture.
    words = "predict", "--dask", client.scheduler.address, tmp_path / "m.mwz", f"{data}/*.parquet"
    done = run(*words, tmp_path / "out", "--scores")
    assert done.exit_code == 0, done.output
    assert "5 of 5 files, 2,500 rows" in done.output
    assert parquet.read_table(tmp_path / "out" / "p1.parquet").column_names == ["label", "score"]
    for k in (1, 2):
        (data / f"p{k}.parquet").write_text("damaged")
    done = run(*words, tmp_path / "out", "--scores", "--quiet")
    assert done.exit_code == 1
    assert "2 of 5 files could not be scored" in done.output
    assert all(f"p{k}.parquet" in done.output for k in (1, 2))
    assert run(*words).exit_code == 2
    assert "use --scores" in run(*words, tmp_path / "out", "--proba").output


def test_the_command_in_a_process_without_a_client(model: Any, data: Path, tmp_path: Path) -> None:
    """A client that was current in this process would hide what depends on one."""
    save(model, tmp_path / "m.mwz")
    words = ["predict", "--dask", "local:1", "m.mwz", "data/*.parquet", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "marginwise", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert labels(tmp_path / "out" / "p3.parquet") == model.predict(table(rows(500, 3)[0])).tolist()
