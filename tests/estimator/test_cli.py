"""The command: what each of its commands does, beside the same in Python."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import Result
from sklearn.datasets import dump_svmlight_file, make_moons
from sklearn.pipeline import Pipeline

import marginwise
from marginwise import ExactSVC, OnlineSVC, load, save
from marginwise.cli import main
from marginwise.cli.options import LIBSVM_KERNELS
from marginwise.cli.output import plain
from marginwise.cli.recipes import ESTIMATORS, documented, first_sentence, kind_of
from marginwise.cli.scaling import ranges_of
from marginwise.cli.tuning import sampled
from marginwise.data import TableEncoder, open_source
from tests.support import runner

pytest.importorskip("pyarrow")


def call(*arguments: object, text: str | None = None) -> Result:
    return runner().invoke(main, [str(argument) for argument in arguments], input=text)


def done(*arguments: object, text: str | None = None) -> Result:
    """Run a command that must succeed."""
    result = call(*arguments, text=text)
    assert result.exit_code == 0, result.output
    return result


def report(*arguments: object) -> dict[str, Any]:
    """Run a command that must print one JSON object, and nothing else with --quiet."""
    result = done(*arguments, "--json", "--quiet")
    assert result.stderr == ""
    (line,) = result.stdout.splitlines()
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def moons(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two numbers, a category that helps, and labels that are names."""
    X, y = make_moons(rows, noise=0.2, random_state=seed)
    rng = np.random.default_rng(seed)
    colour = np.where(rng.random(rows) < 0.8, np.where(y == 1, "red", "blue"), "green")
    return X * [1, 1000], colour, np.where(y == 1, "up", "down")


def write_table(path: Path, rows: int, seed: int, label: bool = True) -> Path:
    X, colour, y = moons(rows, seed)
    lines = ["width,height,colour,customer" + ",label" * label]
    for k in range(rows):
        ending = f",{y[k]}" if label else ""
        lines.append(f"{X[k, 0]:.6f},{X[k, 1]:.3f},{colour[k]},c{k % 20}{ending}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the same rows in several formats, and a model of them."""
    folder = tmp_path_factory.mktemp("files")
    write_table(folder / "train.csv", 300, 0)
    write_table(folder / "test.csv", 200, 1)
    write_table(folder / "new.csv", 50, 2, label=False)
    X, y = make_moons(400, noise=0.2, random_state=0)
    np.savez(folder / "moons.npz", X=X, y=y)
    dump_svmlight_file(X, y, str(folder / "moons.svm"), zero_based=False)
    done("train", folder / "train.csv", folder / "model.mwz", "--drop", "customer", "-q")
    return folder


# -- train, predict, test --------------------------------------------------------------------------


def test_train_needs_no_parameter(files: Path, tmp_path: Path) -> None:
    found = report("train", files / "train.csv", tmp_path / "model.mwz", "--drop", "customer")
    assert found["rows"] == 300
    assert found["classes"] == ["down", "up"]
    assert found["cv_error"] < 0.05
    model = load(tmp_path / "model.mwz")
    assert isinstance(model, Pipeline)
    assert isinstance(model[0], TableEncoder)
    assert model[-1].get_params()["C"] == found["C"]
    assert [path.name for path in tmp_path.iterdir()] == ["model.mwz"]


def test_test_reports_error_rows_and_confusion(files: Path) -> None:
    found = report("test", files / "model.mwz", files / "test.csv")
    assert found.keys() == {"error", "rows", "classes", "confusion"}
    confusion = np.array(found["confusion"])
    assert (found["rows"], confusion.sum()) == (200, 200)
    assert found["error"] == 1 - np.trace(confusion) / 200 < 0.05
    assert confusion.sum(axis=1).tolist() == [100, 100]
    text = done("test", files / "model.mwz", files / "test.csv").stdout.splitlines()
    assert text[0].split() == ["true", "down", "up"]
    assert text[2].split() == ["down", *map(str, confusion[0])]
    assert "of 200 rows" in text[-1]


def test_predictions_are_those_of_python(files: Path, tmp_path: Path) -> None:
    model = load(files / "model.mwz")
    source = open_source(files / "new.csv", labelled=False, encoder=model[0])
    (X, _), *_ = source.chunks(1000)
    lines = done("predict", files / "model.mwz", files / "new.csv", "-q").stdout.splitlines()
    assert lines == model[-1].predict(X).tolist()
    out = tmp_path / "scores.csv"
    done("predict", files / "model.mwz", files / "new.csv", out, "--scores", "-q")
    head, *rows = out.read_text().splitlines()
    assert head == "label,score"
    scores = [float(row.split(",")[1]) for row in rows]
    assert np.allclose(scores, model[-1].decision_function(X), rtol=1e-7)


def test_probabilities_need_calibration(files: Path, tmp_path: Path) -> None:
    refused = call("predict", files / "model.mwz", files / "new.csv", "--proba")
    assert refused.exit_code == 1
    assert "--calibration sigmoid" in refused.stderr
    model = tmp_path / "model.mwz"
    done("train", files / "moons.npz", model, "-c", 10, "--calibration", "sigmoid", "-q")
    lines = done("predict", model, files / "moons.npz", "--proba", "--scores", "-q").stdout
    head, *rows = lines.splitlines()
    assert head == "label,score,p_0,p_1"
    assert all(abs(sum(map(float, row.split(",")[2:])) - 1) < 1e-6 for row in rows)


def test_labels_are_found_where_they_are(files: Path, tmp_path: Path) -> None:
    """The label need not be last, and `test` finds it as the column that is not a feature."""
    X, colour, y = moons(200, 3)
    rows = [f"{y[k]},{X[k, 0]:.5f},{colour[k]}" for k in range(200)]
    (tmp_path / "first.csv").write_text("\n".join(["answer,width,colour", *rows]) + "\n")
    done("train", tmp_path / "first.csv", tmp_path / "m.mwz", "--label", "answer", "-q")
    assert report("test", tmp_path / "m.mwz", tmp_path / "first.csv")["rows"] == 200


def test_standard_input_and_output(files: Path, tmp_path: Path) -> None:
    text = (files / "train.csv").read_text()
    done("train", "-", tmp_path / "model.mwz", "--drop", "customer", "-q", text=text)
    assert (tmp_path / "model.mwz").read_bytes() == (files / "model.mwz").read_bytes()
    new = (files / "new.csv").read_text()
    piped = done("predict", files / "model.mwz", "-", "-", "-q", text=new).stdout
    assert piped == done("predict", files / "model.mwz", files / "new.csv", "-q").stdout


@pytest.mark.parametrize("name", ["moons.npz", "moons.svm"])
def test_given_parameters_are_those_of_fit(name: str, files: Path, tmp_path: Path) -> None:
    """With a number for gamma, features are as in the file, as in LIBSVM."""
    done("train", files / name, tmp_path / "m.mwz", "-c", 10, "-g", 0.5, "-e", 0.01, "-q")
    model = load(tmp_path / "m.mwz")
    X, y = open_source(files / name).load()
    other = OnlineSVC(C=10, gamma=0.5, tol=0.01, random_state=0).fit(X, y)
    assert isinstance(model, OnlineSVC)
    assert np.array_equal(model.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(("number", "kernel"), list(enumerate(LIBSVM_KERNELS)))
def test_kernels_have_numbers_as_in_libsvm(
    number: int, kernel: str, files: Path, tmp_path: Path
) -> None:
    done("train", files / "moons.npz", tmp_path / "m.mwz", "-t", number, "-c", 1, "-d", 2, "-q")
    model = load(tmp_path / "m.mwz")
    model = model[-1] if isinstance(model, Pipeline) else model
    assert (model.kernel, model.degree) == (kernel, 2)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_learns(name: str, files: Path, tmp_path: Path) -> None:
    found = report("train", files / "moons.npz", tmp_path / "m.mwz", "--estimator", name)
    assert found["estimator"] == name
    assert ("cv_error" in found) == (name != "ExactOneClassSVM")
    assert report("test", tmp_path / "m.mwz", files / "moons.npz")["rows"] == 400


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_is_an_option(name: str) -> None:
    options = {param.name: param for param in main.commands["train"].params}
    others = {"n_jobs": "threads", "random_state": "seed", "verbose": "quiet"}
    for parameter in inspect.signature(kind_of(name)).parameters:
        option = options[others.get(parameter, parameter)]
        assert isinstance(option, click.Option)
        assert option.help, parameter


def test_options_are_described_as_in_the_docstrings() -> None:
    texts = documented(OnlineSVC)
    assert texts.keys() == inspect.signature(OnlineSVC).parameters.keys()
    assert texts["pool_size"][0] == "int or None, default=50"
    assert first_sentence(texts["C"][1]) == "Penalty of the hinge loss."
    assert first_sentence(texts["budget"][1]).endswith("from 2 to 16,384.")


def test_values_are_read_as_in_python(files: Path, tmp_path: Path) -> None:
    given = ["--pool_size", "none", "--no-shuffle", "--epochs", "converge", "--class-weight"]
    done("train", files / "moons.npz", tmp_path / "m.mwz", "-c", 1, *given, '{"0": 2.5}', "-q")
    model = load(tmp_path / "m.mwz")[-1]
    assert (model.pool_size, model.shuffle, model.epochs) == (None, False, "converge")
    assert model.class_weight == {0: 2.5}


def test_the_file_depends_on_the_seed_alone(files: Path, tmp_path: Path) -> None:
    for name, options in {"a": ["--threads", 1], "b": ["--threads", 2, "-q"]}.items():
        done("train", files / "train.csv", tmp_path / name, *options)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# -- scaling and tuning ----------------------------------------------------------------------------


def test_features_of_one_range_keep_their_proportions() -> None:
    rng = np.random.default_rng(0)
    pixels = np.rint(255 * rng.random((50, 20)) * (rng.random((50, 20)) < 0.5))
    pixels[:, 3] = 0
    pixels[0, 3] = 2  # a pixel at the border
    scaler = ranges_of([pixels[:20], pixels[20:]]).choose("auto").scaler
    assert np.array_equal(scaler.transform(pixels), pixels / pixels.max())
    assert ranges_of([pixels / pixels.max()]).choose("auto").scaler is None
    assert ranges_of([pixels]).choose("none").scaler is None


def test_features_of_several_ranges_are_divided_by_their_deviations() -> None:
    X = make_moons(100, noise=0.1, random_state=0)[0] * [1, 1000]
    scaled = ranges_of([X]).choose("auto").scaler.transform(X)
    assert np.allclose(scaled.std(axis=0), 1)
    assert np.allclose(scaled, X / X.std(axis=0))  # and not centred


def test_rows_of_one_length_share_a_range() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((50, 6)) * 10.0 ** np.arange(-5, 1)
    X /= np.linalg.norm(X, axis=1)[:, None]
    assert ranges_of([X]).shared
    assert not ranges_of([2 * X[:25], X[25:]]).shared


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_empty_rows_do_not_change_the_scaling(make: Callable[[Any], Any]) -> None:
    """A text without known words has a row of zeros among the rows of length 1."""
    rng = np.random.default_rng(0)
    X = rng.random((50, 6)) * 10.0 ** np.arange(-5, 1)
    X /= np.linalg.norm(X, axis=1)[:, None]
    X[7] = 0
    for chunks in ([X], [X[:7], X[7:8], X[8:]], [X[7:8], X]):
        assert ranges_of(map(make, chunks)).shared
    assert ranges_of([make(np.zeros((3, 2)))]).choose("auto").scaler is None


@pytest.mark.parametrize(
    ("factors", "options", "expected"),
    [
        ([1, 1], [], "divided by their largest value, 4, because they share one range"),
        ([0.25, 0.25], [], "not scaled, because they share one range and the largest value is 1"),
        ([1, 1000], [], "divided by their standard deviations, because their ranges differ"),
        ([1, 1], ["--scale", "standard"],
         "divided by their standard deviations, because of --scale standard"),
        ([1, 1], ["--gamma", 2], "not scaled, because --gamma is a number"),
        ([1, 1], ["--scale", "none"], "not scaled, because of --scale none"),
        ([0, 0], [], "not scaled, because all are zero"),
    ],
)  # fmt: skip
def test_train_reports_the_scaling_and_why(
    tmp_path: Path, factors: list[float], options: list[Any], expected: str
) -> None:
    X = np.array([[1.0, 4.0], [4.0, 1.0], [2.0, 3.0], [3.0, 2.0]] * 3) * factors
    np.savez(tmp_path / "rows.npz", X=X, y=[0, 1] * 6)
    run = done("train", tmp_path / "rows.npz", tmp_path / "m", "--json", "--no-tune", *options)
    assert json.loads(run.stdout)["scaling"] == expected
    assert f"marginwise: features are {expected}\n" in run.stderr


def test_samples_are_stratified_and_in_random_order() -> None:
    y = np.repeat(["a", "b", "c"], [800, 190, 10])
    rows = sampled(y, 100, seed=0)
    assert len(set(rows.tolist())) == 100
    names, counts = np.unique(y[rows], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {"a": 80, "b": 19, "c": 1}
    assert (np.diff(rows) < 0).any()
    assert sorted(sampled(y, 5000, seed=1).tolist()) == list(range(1000))


def test_tune_prints_all_pairs_and_the_best(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.json"
    given = ["--Cs", "0.1,10", "--gammas", 2, "--cv", 3, "--out", out]
    found = report("tune", files / "moons.npz", *given)
    assert len(found["pairs"]) == 4
    best = max(found["pairs"], key=lambda pair: pair["score"])
    assert best["score"] == pytest.approx(1 - found["cv_error"])
    assert found["C"] in {0.1, 10.0}
    assert json.loads(out.read_text()) == found
    lines = done("tune", files / "moons.npz", *given[:-2], "-q").stdout.splitlines()
    assert lines[0].split() == ["C", "gamma", "score", "deviation", "rank"]
    assert len(lines) == 2 + 4 + 1


def test_what_is_given_is_not_tuned(files: Path, tmp_path: Path) -> None:
    found = report("train", files / "moons.npz", tmp_path / "a", "-c", 3, "--tune", "--gammas", 3)
    assert found["C"] == 3
    assert "cv_error" in found
    found = report("train", files / "moons.npz", tmp_path / "b", "-c", 3, "-g", 2, "--cv", 4)
    assert (found["C"], found["gamma"], found["cv_folds"]) == (3, 2, 4)
    assert "cv_error" not in report("train", files / "moons.npz", tmp_path / "c", "--no-tune")


def test_large_data_are_tuned_on_a_part(files: Path, tmp_path: Path) -> None:
    result = done("train", files / "moons.npz", tmp_path / "a", "--tune-rows", 100)
    assert "selecting C and gamma on 100 of 400 rows" in result.stderr


# -- long runs -------------------------------------------------------------------------------------


def test_a_finished_run_continues_to_the_same_file(files: Path, tmp_path: Path) -> None:
    model, again, file = (tmp_path / name for name in ("a.mwz", "b.mwz", "run.ckpt"))
    done("train", files / "train.csv", model, "--checkpoint", file, "--every", "1h", "-q")
    done("continue", file, again, "-q")
    assert model.read_bytes() == again.read_bytes()
    found = report("info", file)
    assert (found["kind"], found["done"]) == ("checkpoint", 300)
    assert found["model"] == str(model)
    refused = call("continue", file)
    assert refused.exit_code == 1
    assert "a.mwz exists" in refused.stderr


def test_checkpoints_of_other_data_are_refused(files: Path, tmp_path: Path) -> None:
    data, file = tmp_path / "data.csv", tmp_path / "run.ckpt"
    write_table(data, 100, 0)
    done("train", data, tmp_path / "a.mwz", "--checkpoint", file, "-q")
    write_table(data, 100, 1)
    refused = call("continue", file, tmp_path / "b.mwz")
    assert refused.exit_code == 1
    assert "another source" in refused.stderr
    assert not (tmp_path / "b.mwz").exists()


def test_streams_are_learned_chunk_by_chunk(files: Path, tmp_path: Path) -> None:
    done("train", files / "moons.npz", tmp_path / "m.mwz", "-c", 10, "-g", 1, "--stream", "-q")
    X, _ = open_source(files / "moons.npz").load()
    other = OnlineSVC(C=10, gamma=1.0, random_state=0)
    other.learn_from(open_source(files / "moons.npz"))
    assert np.array_equal(load(tmp_path / "m.mwz").decision_function(X), other.decision_function(X))


def test_continue_learns_more_rows(files: Path, tmp_path: Path) -> None:
    X, y = open_source(files / "moons.npz").load()
    model = OnlineSVC(C=10, gamma=1.0, random_state=0).fit(X[:200], y[:200])
    save(model, tmp_path / "half.mwz")
    np.savez(tmp_path / "rest.npz", X=X[200:], y=y[200:])
    found = report("continue", tmp_path / "half.mwz", tmp_path / "rest.npz", tmp_path / "all.mwz")
    assert found["rows"] == 200
    model.partial_fit(X[200:], y[200:]).finish()
    assert np.array_equal(
        load(tmp_path / "all.mwz").decision_function(X), model.decision_function(X)
    )
    assert call("continue", tmp_path / "half.mwz", tmp_path / "rest.npz").exit_code == 1
    done("continue", tmp_path / "half.mwz", tmp_path / "rest.npz", "--force", "-q")
    assert (tmp_path / "half.mwz").read_bytes() == (tmp_path / "all.mwz").read_bytes()


# -- model files -----------------------------------------------------------------------------------


def test_forget_removes_the_rows_of_a_group(files: Path, tmp_path: Path) -> None:
    model, gone, receipt = (tmp_path / name for name in ("m.mwz", "gone.txt", "receipt.json"))
    given = ["--estimator", "ExactSVC", "--groups", "customer", "-c", 10]
    done("train", files / "train.csv", model, *given, "-q")
    gone.write_text("c3\nc7\n")
    found = report("forget", model, "--groups", gone, "--receipt", receipt, "--compare")
    assert json.loads(receipt.read_text()) == found
    left = load(model)[-1]
    assert isinstance(left, ExactSVC)
    assert len(left.ids_) == 270
    assert not {"c3", "c7"} & set(left.groups_.tolist())
    assert model.with_name("m.mwz.removals.jsonl").exists()
    refused = call("forget", model, "--groups", gone)
    assert refused.exit_code == 1
    assert "c3" in refused.stderr
    assert call("forget", model).exit_code == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_forget_refuses_a_solution_that_may_not_be_unique(files: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.mwz"
    given = ["--estimator", "ExactSVC", "--kernel", "sigmoid", "-c", 1, "-q"]
    done("train", files / "moons.npz", model, *given)
    before = model.read_bytes()
    gone = files / "gone.txt"
    gone.write_text("0\n5\n")
    refused = call("forget", model, "--ids", gone)
    assert refused.exit_code == 1
    assert "or pass --allow-local for a receipt that states this" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.mwz"]
    assert model.read_bytes() == before
    result = done("forget", model, "--ids", gone, "--allow-local", "--json", "--quiet")
    found = json.loads(result.stdout)
    assert (found["rows_removed"], found["unique"]) == (2, False)


def test_continue_learns_groups(files: Path, tmp_path: Path) -> None:
    given = ["--estimator", "ExactSVC", "--groups", "customer", "-c", 10]
    done("train", files / "train.csv", tmp_path / "a.mwz", *given, "-q")
    more = [files / "test.csv", tmp_path / "b.mwz", "--groups", "customer"]
    assert report("continue", tmp_path / "a.mwz", *more)["rows"] == 200
    groups = load(tmp_path / "b.mwz")[-1].groups_
    assert groups.tolist() == [f"c{k % 20}" for k in [*range(300), *range(200)]]


def test_forget_reads_ids_from_standard_input(files: Path, tmp_path: Path) -> None:
    done("train", files / "moons.npz", tmp_path / "m.mwz", "--estimator", "ExactSVC", "-c", 1)
    done("forget", tmp_path / "m.mwz", "--ids", "-", text="0\n5\n")
    ids = load(tmp_path / "m.mwz")[-1].ids_.tolist()
    assert ids == [k for k in range(400) if k not in (0, 5)]


def test_models_go_to_libsvm_and_back(files: Path, tmp_path: Path) -> None:
    model, text, back = (tmp_path / name for name in ("m.mwz", "m.model", "back.mwz"))
    done("train", files / "moons.npz", model, "-c", 10, "-g", 1, "-q")
    done("export", model, text)
    assert text.read_text().startswith("svm_type c_svc\nkernel_type rbf\ngamma 1\n")
    found = report("import", text, back, "-c", 10)
    assert found["support_vectors"] == len(load(model).support_)
    assert (
        done("predict", back, files / "moons.npz", "-q").stdout
        == done("predict", model, files / "moons.npz", "-q").stdout
    )


@pytest.mark.parametrize(("name", "start"), [("m.h", "/*"), ("m.json", "{"), ("m.onnx", "")])
def test_formats_follow_suffixes(name: str, start: str, files: Path, tmp_path: Path) -> None:
    if name.endswith("onnx"):
        pytest.importorskip("onnx")
    done("train", files / "moons.npz", tmp_path / "m.mwz", "-c", 10, "-g", 1, "-q")
    found = report("export", tmp_path / "m.mwz", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start.encode())
    assert found["format"] in ("c", "json", "onnx")
    assert call("export", tmp_path / "m.mwz", tmp_path / "m.xyz").exit_code == 2
    assert call("export", tmp_path / "m.mwz", tmp_path / name).exit_code == 1


def test_info_describes_models_and_data(files: Path) -> None:
    found = report("info", files / "model.mwz")
    assert (found["kind"], found["estimator"]) == ("model", "OnlineSVC")
    assert found["steps"] == ["TableEncoder"]
    assert found["columns"] == ["width", "height", "colour", "customer"]
    kinds = ["width: numeric", "height: numeric", "colour: categorical", "customer: dropped"]
    assert found["kinds"] == kinds
    assert found["classes"] == ["down", "up"]
    assert found["support_vectors"] == len(load(files / "model.mwz")[-1].support_)
    found = report("info", files / "moons.svm")
    assert (found["rows"], found["features"]) == (400, 2)
    assert found["classes"] == {"0": 200, "1": 200}
    assert "rows: 400" in done("info", files / "moons.npz").stdout


# -- the others ------------------------------------------------------------------------------------


def test_active_counts_labels(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "curve.csv"
    given = ["--max-labels", 60, "--step", 20, "-c", 10, "-g", 1]
    found = report("active", files / "moons.npz", *given, "--out", out)
    assert [labels for labels, _, _ in found["curve"]] == [20, 40, 60]
    assert found["error"] == found["curve"][-1][1] < 0.2
    assert out.read_text().splitlines()[0] == "labels,error,support_vectors"
    found = report("active", files / "moons.npz", *given, "--target-error", 0.9)
    assert (found["labels"], len(found["curve"])) == (20, 1)
    text = done("active", files / "moons.npz", *given, "--target-error", 0, "-q").stdout
    assert "an error of 0 was not reached" in text


def test_bench_measures_itself() -> None:
    found = report("bench", "--rows", 300, "--features", 8)
    assert found["fit"]["rows_per_second"] > 0
    assert found["predict"]["seconds"] > 0
    assert found["versions"]["marginwise"] == marginwise.__version__
    assert found["cpu"]


@pytest.mark.slow
def test_reproduce_lists_experiments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    if not (root / "reproduce").is_dir():
        pytest.skip("the experiments are not part of these files")
    # The package may be installed elsewhere.
    monkeypatch.setattr(marginwise, "__file__", str(root / "src" / "marginwise" / "__init__.py"))
    found = report("reproduce")["experiments"]
    assert found["bordes2005/figure10"]["what"] == "Figure 10"
    assert call("reproduce", "nothing").exit_code == 2
    assert "stores its results as JSON" in call("reproduce", "bordes2005", "--json").stderr
    # Installed, but not as editable: the current folder is the checkout, or there is none.
    monkeypatch.setattr(marginwise, "__file__", str(tmp_path / "a" / "b" / "__init__.py"))
    monkeypatch.chdir(root)
    assert report("reproduce")["experiments"].keys() == found.keys()
    monkeypatch.chdir(tmp_path)
    refused = call("reproduce")
    assert refused.exit_code == 1
    assert "not installed" in refused.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str) -> None:
    assert "_MARGINWISE_COMPLETE" in done("completion", shell).stdout


def test_reports_hold_what_json_can() -> None:
    given = {1: np.float32(0.5), "a": np.arange(2), "b": float("inf"), "c": (None, True)}
    assert plain(given) == {"1": 0.5, "a": [0, 1], "b": None, "c": [None, True]}
