"""Compressing models: what is refused, files and copies, threads, and the display."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginwise import CompressedSVC, ExactSVC, ModelFileError, OnlineSVC, load, save
from marginwise.inspect import CompressionDisplay
from tests.support import blobs, sparse_rows

X, Y = make_moons(400, noise=0.25, random_state=0)
X4, Y4 = make_blobs(300, centers=4, cluster_std=1.2, random_state=1)
NAMES = np.array(["ant", "bee", "cat", "dog"])


@pytest.fixture(scope="module")
def model() -> OnlineSVC:
    return OnlineSVC(C=10.0, gamma=2.0, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def several() -> OnlineSVC:
    return OnlineSVC(C=10.0, gamma=0.3, random_state=0).fit(X4, NAMES[Y4])


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_vectors": 0}, "max_vectors must be None or an integer of at least 1, got 0"),
        ({"max_vectors": -3}, "max_vectors must be"),
        ({"max_vectors": 2.5}, "max_vectors must be"),
        ({"max_vectors": True}, "max_vectors must be"),
        ({"max_error_increase": -0.1, "X": X, "y": Y}, "max_error_increase must be None or"),
        ({"max_error_increase": float("nan"), "X": X, "y": Y}, "max_error_increase must be"),
        ({"max_error_increase": 0.1}, "max_error_increase needs rows .* Pass X and y"),
        ({"curve": True}, "curve needs rows"),
        ({"curve": 1, "X": X, "y": Y}, "curve must be True or False"),
        ({"X": X}, "only one of X and y"),
        ({"sample_weight": np.ones(400)}, "sample_weight needs the rows .* Pass X and y"),
        ({"X": X, "y": Y, "sample_weight": np.ones(3)}, "expected one weight for each of 400"),
        ({"X": X, "y": Y, "sample_weight": -np.ones(400)}, "sample_weight is -1.0 at row 0"),
        ({"X": X, "y": Y, "sample_weight": np.zeros(400)}, "sample_weight is zero for all rows"),
        ({"y": Y}, "only one of X and y"),
        ({"X": X[:, :1], "y": Y}, "1 features, but OnlineSVC is expecting 2"),
        ({"X": X, "y": Y[:-1]}, "inconsistent numbers of samples"),
        ({"X": X, "y": Y + 1}, "y has unknown labels: 2. The known classes are"),
        ({"X": X[:4], "y": [0, 1, 0, 1]}, "needs 5 rows or more of some class"),
        ({"X": np.full((2, 2), np.nan), "y": [0, 1]}, "contains NaN at row 0, column 0"),
    ],
)
def test_bad_arguments_are_refused(model: OnlineSVC, given: Any, message: str) -> None:
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.compress(**given)
    assert pickle.dumps(model) == before


def test_models_that_cannot_be_compressed_are_refused() -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        OnlineSVC().compress(max_vectors=3)
    with pytest.raises(ValueError, match="max_vectors must be"):
        OnlineSVC().compress(max_vectors=0)
    square = OnlineSVC(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match=r"does not support kernel='precomputed'.*Use one of"):
        square.compress(max_vectors=3)
    called = OnlineSVC(kernel=lambda A, B: A @ B.T).fit(X, Y)
    with pytest.raises(ValueError, match="does not support a callable kernel"):
        called.compress(max_vectors=3)


def test_an_increase_that_is_not_reached_is_reported(model: OnlineSVC) -> None:
    with pytest.warns(UserWarning, match="with 1 vectors, the error on held-out rows exceeds"):
        small = model.compress(X, Y, max_vectors=1, max_error_increase=0.001)
    assert small.n_vectors_ == 1


def test_it_does_not_learn(model: OnlineSVC) -> None:
    small = model.compress(max_vectors=5)
    with pytest.raises(NotImplementedError, match=r"cannot be trained.*call its compress method"):
        small.fit(X, Y)
    for name in ("partial_fit", "learn_one", "finish", "compress", "support_", "duality_gap"):
        assert not hasattr(small, name)
    with pytest.raises(AttributeError, match="has no attribute support_"):
        small.support_  # noqa: B018


def test_an_empty_one_says_how_to_make_one(model: OnlineSVC) -> None:
    empty = clone(model.compress(max_vectors=5))
    assert isinstance(empty, CompressedSVC)
    assert empty.get_params() == {}
    with pytest.raises(NotFittedError, match="Call the compress method of a fitted classifier"):
        empty.predict(X)
    with pytest.raises(NotFittedError, match="Call the compress method"):
        empty.n_vectors_  # noqa: B018


# -- what it is ------------------------------------------------------------------------------------


def test_the_model_stays_as_it_was(model: OnlineSVC) -> None:
    before = pickle.dumps(model)
    model.compress(X, Y, max_vectors=10)
    model.compress(X, Y, max_error_increase=0.05)
    assert pickle.dumps(model) == before


def test_it_is_a_classifier(several: OnlineSVC) -> None:
    small = several.compress(X4, NAMES[Y4], max_vectors=12)
    assert small.classes_.tolist() == NAMES.tolist()
    assert small.decision_function(X4).shape == (300, 4)
    assert small.dual_coef_.shape == (6, 12)
    assert small.n_features_in_ == 2
    assert small.gamma_ == 0.3
    assert small.kernel == "rbf"
    assert small.error_curve_ is None
    assert small.full_n_vectors_ == len(several.support_)
    assert small.score(X4, NAMES[Y4]) > several.score(X4, NAMES[Y4]) - 0.02
    with pytest.raises(ValueError, match="3 features, but CompressedSVC is expecting 2"):
        small.predict(np.zeros((1, 3)))


def test_names_of_features_are_kept() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["left", "right"])
    model = OnlineSVC(gamma=2.0, random_state=0).fit(frame, Y)
    small = model.compress(frame, Y, max_vectors=10)
    assert small.feature_names_in_.tolist() == ["left", "right"]
    with pytest.raises(ValueError, match="feature names should match"):
        small.predict(frame.rename(columns={"left": "up"}))


def test_it_works_in_pipelines_and_calibration(model: OnlineSVC) -> None:
    scaler = StandardScaler().fit(X)
    fitted = OnlineSVC(C=10.0, gamma=1.0, random_state=0).fit(scaler.transform(X), Y)
    small = fitted.compress(scaler.transform(X), Y, max_vectors=20)
    assert (
        make_pipeline(scaler, small).predict(X).tolist()
        == small.predict(scaler.transform(X)).tolist()
    )
    frozen = FrozenEstimator(model.compress(X, Y, max_vectors=20))
    probability = CalibratedClassifierCV(frozen).fit(X, Y).predict_proba(X)
    assert np.mean((probability[:, 1] > 0.5) == Y) > 0.9


def test_a_class_without_rows_keeps_its_projection(several: OnlineSVC) -> None:
    known = Y4 < 3
    small = several.compress(X4[known], NAMES[Y4][known], max_vectors=40)
    assert small.score(X4, NAMES[Y4]) > 0.8


def test_a_model_without_support_vectors_is_compressed() -> None:
    perceptron = OnlineSVC(gamma=1.0).partial_fit([[0.0], [0.0]], [0, 0], classes=[0, 1])
    small = perceptron.compress(max_vectors=3)
    assert small.n_vectors_ == len(perceptron.support_)
    assert small.predict([[0.0]]).tolist() == perceptron.predict([[0.0]]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"curve": True}, {"max_vectors": 3, "curve": True}])
def test_a_model_without_support_vectors_is_compressed_with_rows(given: Any) -> None:
    young = OnlineSVC(gamma=0.3).partial_fit(X4[:1], Y4[:1], classes=[0, 1, 2, 3])
    small = young.compress(X4, Y4, **given)
    assert small.n_vectors_ == len(young.support_) == 0
    assert small.predict(X4).tolist() == young.predict(X4).tolist()
    assert small.error_curve_["chosen"] == 1


def test_a_model_that_stays_whole_is_not_reported() -> None:
    young = OnlineSVC(gamma=2.0, random_state=0).partial_fit(X[:4], Y[:4], classes=[0, 1])
    small = young.compress(X, Y, max_error_increase=0.0)  # a model of all rows is better than this
    assert small.n_vectors_ == len(young.support_)
    assert small.error_curve_["error"][-1] > small.error_curve_["full_error"]


def test_a_stream_of_one_class_so_far_has_files(tmp_path: Path) -> None:
    young = OnlineSVC(gamma=1.0, calibration="sigmoid").partial_fit(X[:5], ["ant"] * 5)
    small = through_file(young.compress(max_vectors=3), tmp_path)
    assert small.predict(X[:2]).tolist() == ["ant", "ant"]
    assert small.predict_proba(X[:2]).tolist() == [[1.0], [1.0]]


# -- files and copies ------------------------------------------------------------------------------


def through_file(small: CompressedSVC, folder: Path) -> Any:
    save(small, folder / "small.mwz")
    return load(folder / "small.mwz")


def through_skops(small: CompressedSVC, folder: Path) -> Any:
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(small)
    return skops.loads(data, trusted=skops.get_untrusted_types(data=data))


def through_joblib(small: CompressedSVC, folder: Path) -> Any:
    buffer = io.BytesIO()
    joblib.dump(small, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "copy",
    [through_file, through_skops, through_joblib, lambda s, _: pickle.loads(pickle.dumps(s))],
    ids=["file", "skops", "joblib", "pickle"],
)
@pytest.mark.parametrize("rows", [True, False])
def test_copies_predict_the_same(several: OnlineSVC, copy: Any, rows: bool, tmp_path: Path) -> None:
    given = {"X": X4, "y": NAMES[Y4], "max_error_increase": 0.05} if rows else {"max_vectors": 9}
    small = several.compress(**given)
    again = copy(small, tmp_path)
    assert type(again) is CompressedSVC
    assert (again.decision_function(X4) == small.decision_function(X4)).all()
    assert again.full_n_vectors_ == small.full_n_vectors_
    assert (again.error_curve_ is None) == (small.error_curve_ is None)
    if rows:
        assert again.error_curve_["error"].tolist() == small.error_curve_["error"].tolist()


def test_sparse_models_have_files(tmp_path: Path) -> None:
    rows = sparse_rows(200, 80, 0.03, np.random.default_rng(0))
    labels = np.asarray(rows[:, :40].sum(axis=1) > rows[:, 40:].sum(axis=1)).astype(int)
    small = OnlineSVC(gamma=1.0, random_state=0).fit(rows, labels).compress(max_vectors=20)
    assert issparse(small.support_vectors_)
    again = through_file(small, tmp_path)
    assert (again.decision_function(rows) == small.decision_function(rows)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_intercept", np.array([np.nan])),
        ("_intercept", np.zeros(2)),
        ("_full_size", -1),
        ("_curve", {"error": np.zeros(1)}),
        (
            "_curve",
            {"n_vectors": np.array([8]), "error": np.zeros(1), "full_error": 0.0, "chosen": 9},
        ),
        ("n_jobs", 0),
        ("classes_", np.array([1, 0])),
        ("extra", 1),
    ],
)
def test_files_with_other_values_are_refused(
    model: OnlineSVC, name: str, value: Any, tmp_path: Path
) -> None:
    from marginwise._files.format import write_state

    state = model.compress(max_vectors=5)._stored_state()
    write_state(tmp_path / "bad.mwz", "CompressedSVC", {**state, name: value})
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load(tmp_path / "bad.mwz")


def test_files_with_a_history_are_refused(model: OnlineSVC, tmp_path: Path) -> None:
    from marginwise._files.format import write_state

    state = model.compress(max_vectors=5)._stored_state()
    state["_machine"]["plan"]["record"] = True
    write_state(tmp_path / "bad.mwz", "CompressedSVC", state)
    with pytest.raises(ModelFileError, match="has no history"):
        load(tmp_path / "bad.mwz")


# -- threads and interrupts ------------------------------------------------------------------------


def test_threads_make_the_same_model(several: OnlineSVC) -> None:
    alone = several.compress(X4, NAMES[Y4], max_vectors=20).decision_function(X4)
    with ThreadPoolExecutor(3) as pool:
        tasks = [pool.submit(several.compress, X4, NAMES[Y4], max_vectors=20) for _ in range(3)]
        for task in tasks:
            assert (task.result().decision_function(X4) == alone).all()
    twin = clone(several).set_params(n_jobs=2).fit(X4, NAMES[Y4])
    small = twin.compress(X4, NAMES[Y4], max_vectors=20)
    assert (small.decision_function(X4) == alone).all()


def test_an_interrupt_leaves_the_model_as_it_was(
    model: OnlineSVC, monkeypatch: pytest.MonkeyPatch
) -> None:
    from marginwise._compression import refit

    before = pickle.dumps(model)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(refit, "minimise", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.compress(X, Y, max_vectors=10)
    assert pickle.dumps(model) == before


def test_verbose_shows_progress(caplog: pytest.LogCaptureFixture) -> None:
    model = OnlineSVC(gamma=0.3, verbose=1, random_state=0).fit(X4, Y4)
    model.compress(X4, Y4, max_vectors=10)
    assert any("6 of 6 problems" in record.getMessage() for record in caplog.records)


def test_rows_are_bounded_by_memory(model: OnlineSVC, monkeypatch: pytest.MonkeyPatch) -> None:
    from marginwise._compression import refit

    monkeypatch.setattr(refit, "auto_bytes", lambda _: 4 * 20 * 200)  # 200 rows of 20 coordinates
    shapes = []
    minimise = refit.minimise
    monkeypatch.setattr(
        refit,
        "minimise",
        lambda rows, *args, **kwargs: (
            shapes.append(rows.coordinates.shape),
            minimise(rows, *args, **kwargs),
        )[1],
    )
    small = model.compress(X, Y, max_vectors=20)
    assert shapes == [(200, 20)]
    assert small.score(X, Y) > 0.9


# -- the display -----------------------------------------------------------------------------------


@pytest.fixture
def _no_window() -> Iterator[None]:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.mark.slow
@pytest.mark.usefixtures("_no_window")
def test_the_curve_is_drawn(model: OnlineSVC) -> None:
    small = model.compress(X, Y, max_error_increase=0.02, curve=True)
    display = CompressionDisplay.from_estimator(small)
    curve = small.error_curve_
    assert curve["n_vectors"][-1] == len(model.support_)
    assert display.line_.get_xdata().tolist() == curve["n_vectors"].tolist()
    assert display.line_.get_ydata() == pytest.approx(100 * curve["error"])
    assert display.figure_ is display.ax_.figure
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == [
        "compressed",
        f"full model, {len(model.support_)} vectors",
        f"chosen: {curve['chosen']} vectors",
    ]
    assert CompressionDisplay([1, 2], [0.5, 0.25]).plot(ax=display.ax_).ax_ is display.ax_


@pytest.mark.usefixtures("_no_window")
def test_what_has_no_curve_is_refused(model: OnlineSVC) -> None:
    with pytest.raises(TypeError, match="OnlineSVC has no error_curve_"):
        CompressionDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="Pass X, y and curve=True"):
        CompressionDisplay.from_estimator(model.compress(max_vectors=5))
    with pytest.raises(ValueError, match="one error for each number"):
        CompressionDisplay([1, 2], [0.5]).plot()
    with pytest.raises(ValueError, match="not among n_vectors"):
        CompressionDisplay([1, 2], [0.5, 0.4], chosen=3).plot()


@pytest.mark.slow
def test_a_size_that_is_chosen_is_bounded(
    model: OnlineSVC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marginwise._estimator.compression.MOST_VECTORS", 1)
    assert len(model.support_) > 20
    with pytest.warns(UserWarning, match="with 1 vectors, the error .* Increase max_vectors"):
        assert model.compress(X, Y, max_error_increase=0.0).n_vectors_ == 1
    assert model.compress(X, Y, max_vectors=20).n_vectors_ > 1
    assert model.compress().n_vectors_ == len(model.support_), "one is not near enough"


# -- probabilities --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", [OnlineSVC, ExactSVC])
def test_probabilities_come_along(kind: type, seed: int, tmp_path: Path) -> None:
    X, y = blobs(600, seed, classes=3)
    model = kind(gamma=0.5, calibration="sigmoid").fit(X[:400], y[:400])
    full = log_loss(y[400:], model.predict_proba(X[400:]))
    for small in (model.compress(X[:400], y[:400], max_vectors=30), model.compress(max_vectors=60)):
        chances = small.predict_proba(X[400:])
        assert log_loss(y[400:], chances) < full + 0.1
        assert np.array_equal(small.predict(X[400:]), small.classes_[chances.argmax(axis=1)])
        save(small, tmp_path / "small.mwz")
        assert np.array_equal(load(tmp_path / "small.mwz").predict_proba(X[400:]), chances)


def test_no_probabilities_without_calibration() -> None:
    X, y = blobs(100, 0, classes=2)
    small = OnlineSVC(gamma=0.5).fit(X, y).compress(max_vectors=10)
    assert not hasattr(small, "predict_proba")
