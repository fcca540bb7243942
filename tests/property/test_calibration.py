"""Laws of probabilities: what they are, what they do not depend on, and what is noted for them."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from marginwise import (
    ActiveLearner,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    OnlineSVCCV,
    TrackingSVC,
    load,
    save,
)
from marginwise._engine.foresight import Foresight
from marginwise._training import runs
from marginwise.calibration import Calibrator, Sigmoid, couple
from tests.active_support import Source
from tests.support import Rows, assert_same_model, blobs, rings

STREAMS = [
    OnlineSVC(gamma=0.5),
    OnlineSVC(gamma=0.5, multiclass="ovo"),
    OnlineSVC(gamma=0.5, budget=30),
    OnlineSVC(gamma=0.5, replay=20, random_state=0),
    GapSVC(gamma=0.5, loss="ramp"),
    TrackingSVC(gamma=0.5, random_state=0),
    ExactRampSVC(gamma=0.5, max_idle=20),
    KernelPerceptron(gamma=0.5, random_state=0),
    KernelPerceptron(gamma=0.5, average=True, random_state=0),
]
CLASSIFIERS = [*STREAMS, ExactSVC(gamma=0.5), OnlineSVCCV(Cs=2, gammas=2, cv=2)]
KINDS = ["sigmoid", "isotonic"]
NEW, _ = blobs(200, 99, 3)


def each(estimators: list[Any]) -> Any:
    return pytest.mark.parametrize("estimator", estimators, ids=lambda one: f"{one!r:.60}")


def calibrated(estimator: Any, kind: str | None = "sigmoid", **params: Any) -> Any:
    return clone(estimator).set_params(calibration=kind, **params)


def begun(estimator: Any, X: Any, y: Any, kind: str = "sigmoid", **options: Any) -> Any:
    model = calibrated(estimator, kind)
    if isinstance(model, OnlineSVCCV):
        return model.fit(X, y)
    return model.partial_fit(X, y, classes=np.unique(y), **options)


def noted(model: Any) -> Foresight:
    """What a model recorded while it learned, or the values of the rows of a fit left out."""
    return model._engine.foresight


def assert_same_foresight(one: Any, other: Any) -> None:
    for name, values in vars(noted(one)).items():
        assert np.array_equal(values, getattr(noted(other), name)), name


@pytest.mark.parametrize("estimator", [OnlineSVC(), OnlineSVC(replay=200, random_state=0)])
def test_a_new_cost_does_not_weigh_earlier_rows(estimator: OnlineSVC) -> None:
    """All rows count equally for calibration, whatever C was when they were learned."""
    X, y = blobs(200, 5, 2)
    y = np.where(np.arange(200) % 4 == 0, 1 - y, y)  # noise, except in the last rows
    model = begun(clone(estimator).set_params(C=0.01), X, y)
    before = model.calibration_.log_loss
    X, y = blobs(6, 6, 2)
    after = model.set_params(C=1.0).partial_fit(X, y).calibration_.log_loss
    assert before > 0.4
    assert after > 0.4


@pytest.mark.parametrize("pool", [np.asarray, Source])
def test_answers_of_an_active_learner_count(pool: Callable[[Any], Any]) -> None:
    """Values are recorded, in memory or not: the curve is that of the model as it learns."""
    X, y = blobs(200, 5, 2)
    learner = ActiveLearner(calibrated(OnlineSVC(C=0.1)), pool(X), random_state=0)
    for rows in np.split(np.arange(200), 10):
        learner.teach(rows, y[rows])
    assert learner.estimator_.calibration_.n_values.sum() > 50


# -- probabilities -----------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
@each(CLASSIFIERS)
def test_they_sum_to_one(estimator: Any, kind: str, classes: int) -> None:
    X, y = blobs(150, 0, classes)
    model = begun(estimator, X, y, kind)
    p = model.predict_proba(NEW)
    assert p.shape == (len(NEW), classes)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert np.ptp(p[:, 0]) > 0.3, "rows are not told apart"
    with np.errstate(divide="ignore"):
        assert np.array_equal(model.predict_log_proba(NEW), np.log(p))


@pytest.mark.parametrize("fitted", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", KINDS)
@each(CLASSIFIERS)
def test_two_classes_agree_with_what_is_predicted(estimator: Any, kind: str, fitted: str) -> None:
    """Labels that are wrong in one place move an isotonic regression; not the boundary."""
    X, y = rings(200, 1)
    y = np.where(X[:, 0] > 0.7, 1, y)
    model = begun(estimator, X, y, kind)
    if fitted == "fit":
        model.fit(X, y)
    p, f = model.predict_proba(NEW)[:, 1], model.decision_function(NEW)
    assert (p[f > 0] >= 0.5).all()
    assert (p[f <= 0] <= 0.5).all()
    assert (np.diff(p[np.argsort(f)]) >= -1e-15).all(), "not monotone"


FLOATS = st.floats(-(2.0**127), 2.0**127, width=32)
SIZES = st.floats(2.0**-126, 2.0**127, width=32)
FAR = np.concatenate([-np.logspace(38, -38, 40), [0.0], np.logspace(-38, 38, 40)])


@given(
    st.lists(st.tuples(FLOATS, SIZES, st.booleans()), max_size=30),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_any_values_give_probabilities(rows: Any, kind: str, shifted: bool) -> None:
    f = np.array([value for value, _, _ in rows], dtype=np.float32)
    weight = np.array([w if up else -w for _, w, up in rows], dtype=np.float32)
    for pairs, columns in (
        (False, [(f, weight)]),
        (True, [(f, weight), (f[:0], f[:0]), (f, weight)]),
    ):
        fitted = Calibrator.fit(kind, columns, pairs=pairs, shifted=shifted)
        p = fitted.probabilities(FAR[:, np.newaxis].repeat(len(columns), axis=1))
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
        assert len(columns) > 1 or (np.diff(p[:, 1]) >= -1e-15).all(), "not monotone"


@given(st.integers(0, 10**6), st.integers(-30, 30), st.booleans())
def test_the_unit_of_decision_values_does_not_matter(seed: int, power: int, shifted: bool) -> None:
    rng = np.random.default_rng(seed)
    f, unit = rng.normal(size=60), 2.0**power
    target = (rng.random(60) < 1 / (1 + np.exp(-2 * f))).astype(float)
    one = Sigmoid.fit(f, target, np.ones(60), shifted=shifted)
    other = Sigmoid.fit(unit * f, target, np.ones(60), shifted=shifted)
    np.testing.assert_allclose(other(unit * f), one(f), atol=1e-9)


@given(st.integers(3, 9), st.integers(0, 10**6))
def test_coupling_does_not_depend_on_the_order_of_classes(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    second = rng.random((4, classes * (classes - 1) // 2))
    place = {pair: k for k, pair in enumerate(itertools.combinations(range(classes), 2))}
    swapped = [place[classes - 1 - b, classes - 1 - a] for a, b in place]
    turned = 1 - second[:, swapped]  # the classes in reversed order
    np.testing.assert_allclose(couple(turned)[:, ::-1], couple(second), atol=1e-9)


# -- the model is the same ----------------------------------------------------------------------


@each(STREAMS)
def test_a_stream_learns_the_same_model(estimator: Any) -> None:
    X, y = blobs(300, 2, 3)
    plain = clone(estimator).partial_fit(X, y, classes=[0, 1, 2])
    assert_same_model(begun(estimator, X, y), plain, "calibration")


@pytest.mark.parametrize("random_state", [0, "generator"])
@each([*STREAMS, OnlineSVC(gamma=0.5, epochs="converge"), OnlineSVC(selection="active", gamma=1.0)])
def test_a_fit_of_few_rows_is_the_same(estimator: Any, random_state: Any) -> None:
    """Folds do not draw from the generator of the model: what follows is the same, too."""
    X, y = blobs(300, 3, 3)
    models = []
    for kind in (None, "isotonic"):
        rng = np.random.RandomState(0) if random_state == "generator" else 0
        model = calibrated(estimator, kind, random_state=rng).fit(X[:200], y[:200])
        models.append(model.partial_fit(X[200:], y[200:]))
    assert_same_model(*models, "calibration")


@pytest.mark.parametrize(("n", "jobs"), [(1200, 1), (4200, 1), (4200, 2)])
def test_a_fit_of_many_rows_is_the_same(n: int, jobs: int) -> None:
    X, y = rings(n, 4, 0.1)
    plain = OnlineSVC(gamma=0.5, random_state=0, n_jobs=jobs)
    model = calibrated(plain).fit(X, y)
    assert_same_model(model, plain.fit(X, y), "calibration")
    p = model.predict_proba(NEW)
    assert_same_model(model, plain, "calibration")
    assert np.array_equal(model.finish().predict_proba(NEW), p), "finishing a solution changed it"


# -- what they do not depend on ----------------------------------------------------------------


def in_parts(model: Any, X: Any, y: Any, sizes: list[int]) -> Any:
    """Learn rows in parts of these sizes, by each way to learn in turn."""
    start = 0
    for k, size in enumerate(sizes):
        rows = slice(start, start + size)
        start += size
        if size == 1:
            model.learn_one(X[rows][0], y[rows][0])
        elif k % 2:
            model.learn_many(X[rows], y[rows])
        else:
            model.partial_fit(X[rows], y[rows])
    return model


@pytest.mark.parametrize("classes", [2, 3])
@each(STREAMS)
def test_how_a_stream_is_cut(estimator: Any, classes: int) -> None:
    X, y = blobs(300, 6, classes)
    whole = begun(estimator, X, y)
    parts = begun(estimator, X[:40], y[:40])
    in_parts(parts, X[40:], y[40:], [1, 1, 7, 50, 1, 30, 100, 1, 69])
    assert_same_foresight(whole, parts)
    assert np.array_equal(whole.predict_proba(NEW), parts.predict_proba(NEW))


@pytest.mark.parametrize("n", [300, 1500, 4200])
@pytest.mark.parametrize("change", [{"n_jobs": 2}, {"cache_size": 0.05}])
def test_threads_and_caches(n: int, change: dict[str, Any]) -> None:
    X, y = blobs(n, 7, 3)
    one = OnlineSVC(gamma=0.5, calibration="sigmoid", random_state=0).fit(X, y)
    other = clone(one).set_params(**change).fit(X, y)
    assert_same_foresight(one, other)
    assert np.array_equal(one.predict_proba(NEW), other.predict_proba(NEW))


def by_file(model: Any, folder: Path) -> Any:
    save(model, folder / "m.mwz")
    return load(folder / "m.mwz")


def by_pickle(model: Any, folder: Path) -> Any:
    return pickle.loads(pickle.dumps(model))


def by_joblib(model: Any, folder: Path) -> Any:
    joblib.dump(model, folder / "m.joblib")
    return joblib.load(folder / "m.joblib")


def by_memory_map(model: Any, folder: Path) -> Any:
    joblib.dump(model, folder / "m.joblib")
    return joblib.load(folder / "m.joblib", mmap_mode="r")


def by_skops(model: Any, folder: Path) -> Any:
    data = skops.io.dumps(model)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def by_deepcopy(model: Any, folder: Path) -> Any:
    return copy.deepcopy(model)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stored", [by_file, by_pickle, by_joblib, by_memory_map, by_skops, by_deepcopy]
)
@each(CLASSIFIERS)
def test_stored_in_the_middle_of_a_stream(estimator: Any, stored: Any, tmp_path: Path) -> None:
    X, y = blobs(260, 8, 3)
    model = begun(estimator, X[:130], y[:130])
    again = stored(model, tmp_path)
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    for one in (model, again):
        one.partial_fit(X[130:], y[130:])
    assert_same_foresight(model, again)
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize("weight", [1e-300, 1e-40, 1e60, 1e150])
def test_weights_beyond_floats_can_be_stored(weight: float, tmp_path: Path) -> None:
    X, y = blobs(150, 9, 2)
    weights = np.where(np.arange(150) % 3, 1.0, weight)
    for model in (
        OnlineSVC(gamma=0.5, calibration="isotonic").fit(X, y, sample_weight=weights),
        begun(OnlineSVC(gamma=0.5), X, y, sample_weight=weights),
    ):
        p = model.predict_proba(NEW)
        assert np.isfinite(p).all()
        assert np.array_equal(by_file(model, tmp_path).predict_proba(NEW), p)


@pytest.mark.parametrize("scale", [1e-20, 1e10, 1e40])
def test_decision_values_of_any_size(scale: float, tmp_path: Path) -> None:
    """Those of a perceptron grow with the square of the features."""
    X, y = blobs(300, 10, 2)
    expected = begun(KernelPerceptron(kernel="linear"), X, y)
    model = begun(KernelPerceptron(kernel="linear"), scale * X, y)
    p = model.predict_proba(scale * NEW)
    assert np.isfinite(p).all()
    assert np.array_equal(by_file(model, tmp_path).predict_proba(scale * NEW), p)
    if scale < 1e20:
        np.testing.assert_allclose(p, expected.predict_proba(NEW), atol=1e-4)


# -- what is noted -----------------------------------------------------------------------------


@each(STREAMS[:3] + STREAMS[4:])
def test_a_row_that_comes_again_is_not_noted(estimator: Any) -> None:
    X, y = blobs(100, 11, 2)
    model = begun(estimator, X, y, ids=np.arange(100))
    before, held = noted(model).seen[0], model.ids_
    model.partial_fit(X[held], y[held], ids=held)
    assert noted(model).seen[0] == before


def test_replayed_rows_are_not_noted() -> None:
    X, y = blobs(300, 12, 2)
    model = begun(OnlineSVC(gamma=0.5, replay=50, random_state=0), X, y)
    assert 290 < noted(model).seen[0] <= 300
    before = noted(model).seen[0]
    model.finish()
    assert noted(model).seen[0] == before


@pytest.mark.parametrize("params", [{"budget": 400}, {"budget": 400, "epochs": 2}], ids=str)
def test_each_row_is_noted_once(params: dict[str, Any]) -> None:
    X, y = rings(1200, 13, 0.1)
    model = OnlineSVC(gamma=0.5, random_state=0, calibration="sigmoid", **params).fit(X, y)
    assert 900 < noted(model).seen[0] <= 1200  # the first ones come before a model


@pytest.mark.parametrize(("n", "classes"), [(1500, 2), (6000, 2), (6000, 3), (9000, 40)])
def test_rows_left_out_stand_for_all_rows(n: int, classes: int) -> None:
    """Rare classes have more rows, which then count less."""
    X, y = blobs(n, 14, classes)
    y = np.where((y == 0) & (np.arange(n) % 8 > 0), 1, y)
    model = OnlineSVC(gamma=0.5, random_state=0, calibration="sigmoid", multiclass="ovr").fit(X, y)
    for c, (_, weight) in enumerate(noted(model).columns):
        positive = np.count_nonzero(y == (1 if classes == 2 else c))
        assert weight[weight > 0].sum() == pytest.approx(positive, rel=1e-4)
        assert np.abs(weight).sum() == pytest.approx(n, rel=1e-4)
        assert len(weight) <= (n if n == 1500 else 4096)
        assert np.count_nonzero(weight > 0) >= min(positive, 0.2 * len(weight) / classes)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"epochs": 3},
        {"epochs": "converge"},
        {"selection": "gradient", "pool_size": None},
        {"selection": "active", "stop": 30},
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_all_of_few_rows_are_held_out_once(params: dict[str, Any], classes: int) -> None:
    X, y = blobs(120, 15, classes)
    weights = np.where(np.arange(120) % 4, 1.0, 0.0)
    model = OnlineSVC(gamma=0.5, random_state=0, calibration="sigmoid", multiclass="ovr", **params)
    model.fit(X, y, sample_weight=weights)
    assert noted(model).kept.tolist() == [90] * (1 if classes == 2 else 3)


def test_rows_that_were_not_chosen_count_too() -> None:
    """Full search and stopping rules learn rows that they chose: not a sample of all rows."""
    X, y = rings(1100, 16, 0.1)
    model = OnlineSVC(gamma=0.5, random_state=0, calibration="sigmoid", selection="active", stop=40)
    assert noted(model.fit(X, y)).kept[0] == 1100


def test_what_is_kept_stays_bounded() -> None:
    X, y = blobs(30_000, 17, 3)
    model = begun(KernelPerceptron(gamma=0.5, budget=5), X[:100], y[:100])
    for start in range(100, 30_000, 1300):
        model.learn_many(X[start : start + 1300], y[start : start + 1300])
    assert noted(model).seen.tolist() == [30_000] * 3
    assert noted(model).kept.tolist() == [2048] * 3


# -- several classes ---------------------------------------------------------------------------


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_classes_that_come_later(multiclass: str) -> None:
    X, y = blobs(400, 18, 5)
    order = np.argsort(y > np.minimum(1 + np.arange(400) // 60, 4), kind="stable")
    X, y = X[order], y[order]
    model = calibrated(OnlineSVC(gamma=0.5, multiclass=multiclass))
    parts = clone(model)
    model.partial_fit(X, y)
    for k in range(0, 400, 8):
        parts.partial_fit(X[k : k + 8], y[k : k + 8])
        p = parts.predict_proba(NEW[:3])
        assert p.shape == (3, len(parts.classes_))
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert_same_foresight(model, parts)
    assert np.array_equal(model.predict_proba(NEW), parts.predict_proba(NEW))


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_a_new_class_leaves_what_is_known_of_the_others(multiclass: str) -> None:
    X, y = blobs(300, 19, 2)
    labels = np.where(y == 1, 3, 1)
    model = calibrated(OnlineSVC(gamma=0.5, multiclass=multiclass)).partial_fit(X, labels)
    (f, weight), seen = noted(model).columns[0], noted(model).seen[0]
    model.partial_fit([[9.0, 9.0]], [2])
    grown = noted(model)
    # Classes 1, 2, 3. The pair (1, 3) comes second, and has no part in the new row. Against the
    # rest, class 1 was the negative one; there the new row takes the place of the oldest value.
    known = [(1, 1, 0)] if multiclass == "ovo" else [(0, -1, 1), (2, 1, 1)]
    for c, sign, new in known:
        assert np.array_equal(grown.columns[c][0][: len(f) - new], sign * f[new:])
        assert np.array_equal(grown.columns[c][1][: len(f) - new], sign * weight[new:])
        assert grown.seen[c] == seen + new


def test_one_class_is_certain() -> None:
    model = calibrated(OnlineSVC(gamma=0.5)).partial_fit(NEW[:9], ["a"] * 9)
    assert np.array_equal(model.predict_proba(NEW), np.ones((len(NEW), 1)))
    assert np.array_equal(model.predict_log_proba(NEW), np.zeros((len(NEW), 1)))
    model.partial_fit(NEW[9:12], ["a", "b", "b"])
    assert model.predict_proba(NEW).shape == (len(NEW), 2)


@pytest.mark.parametrize("kind", KINDS)
@each(CLASSIFIERS[:-1])
def test_a_class_of_one_row(estimator: Any, kind: str) -> None:
    X, y = blobs(80, 20, 2)
    X, y = np.vstack([X, [[5.0, 5.0]]]), np.append(y, 2)
    model = calibrated(estimator, kind).fit(X, y)
    p = model.predict_proba(NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@each(CLASSIFIERS[:-1])
def test_two_rows(estimator: Any, kind: str) -> None:
    model = calibrated(estimator, kind).fit([[-1.0, 0.0], [1.0, 0.0]], ["a", "b"])
    p = model.predict_proba([[-1.0, 0.0], [1.0, 0.0]])
    assert p[0, 0] >= 0.5 <= p[1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_classes(kind: str) -> None:
    X, y = blobs(900, 21, 300)
    model = calibrated(OnlineSVC(gamma=0.5), kind).partial_fit(X, y, classes=np.arange(300))
    np.testing.assert_allclose(model.predict_proba(NEW[:5]).sum(axis=1), 1, atol=1e-12)


def test_a_stream_of_one_class_for_long() -> None:
    """Its last rows say that all are of this class; the boundary stays where it is."""
    X, y = blobs(300, 22, 2)
    model = begun(OnlineSVC(gamma=0.5), X, y)
    model.partial_fit(X[y == 1].repeat(20, axis=0), np.ones(20 * np.count_nonzero(y), dtype=int))
    p, f = model.predict_proba(NEW)[:, 1], model.decision_function(NEW)
    assert np.isfinite(p).all()
    assert (p[f > 0] >= 0.5).all()
    assert (p[f <= 0] <= 0.5).all()
    assert p[f > 0].max() > 0.9


# -- rows of other kinds -----------------------------------------------------------------------


def test_weights_of_zero_are_no_rows() -> None:
    X, y = blobs(200, 23, 2)
    weights = np.where(np.arange(200) % 2, 0.0, 2.0)
    for learn in (OnlineSVC.fit, lambda model, *rows, **w: model.partial_fit(*rows, [0, 1], **w)):
        model = learn(calibrated(OnlineSVC(gamma=0.5, shuffle=False)), X, y, sample_weight=weights)
        assert (np.abs(noted(model).weight) == 2).all()
        assert noted(model).kept[0] <= 100


@pytest.mark.parametrize("weights", [{0: 1.0, 1: 8.0}, "balanced"])
def test_class_weights_do_not_move_probabilities(weights: Any) -> None:
    """They move the boundary; the share of a class stays what it is."""
    X, y = blobs(3000, 24, 2)
    few = (y == 0) | (np.arange(3000) % 6 == 0)
    X, y = X[few][:900], y[few][:900]
    plain = OnlineSVC(gamma=0.5, calibration="sigmoid", random_state=0).fit(X, y)
    model = clone(plain).set_params(class_weight=weights).fit(X, y)
    assert (model.predict(NEW) == 1).mean() > (plain.predict(NEW) == 1).mean() + 0.02
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)
    model.set_params(class_weight=None).learn_one(X[0], y[0])
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)


@pytest.mark.parametrize("n", [150, 1200])
def test_other_forms_of_rows(n: int) -> None:
    """Kernels by name, as a matrix and as a function, dense and sparse, are one model."""
    X, y = blobs(n, 25, 3)
    X = X.astype(np.float32).astype(np.float64)

    def linear(A: Any, B: Any) -> Any:
        return np.asarray(A) @ np.asarray(B).T

    params = {"C": 0.1, "calibration": "sigmoid", "random_state": 0, "tol": 1e-5}
    expected = OnlineSVC(kernel="linear", **params).fit(X, y).predict_proba(NEW)
    sparse = OnlineSVC(kernel="linear", **params).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(NEW)), expected, atol=2e-3)
    function = OnlineSVC(kernel=linear, **params).fit(X, y)
    atol = 2e-3 if n <= 1000 else 1e-2  # rows held out are judged by a rough solution
    np.testing.assert_allclose(function.predict_proba(NEW), expected, atol=atol)
    if n > 1000:  # a matrix is too wide to be solved as a whole
        return
    matrix = OnlineSVC(kernel="precomputed", **params).fit(X @ X.T, y)
    np.testing.assert_allclose(matrix.predict_proba(NEW @ X.T), expected, atol=2e-3)


def test_rows_that_are_strings() -> None:
    def share(A: Any, B: Any) -> Any:
        return np.array([[len(set(a) & set(b)) + (a == b) for b in B] for a in A], dtype=float)

    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdef"), size=4)) for _ in range(90)]
    y = np.array(["no", "yes"])[[int("a" in word) for word in words]]
    for model in (
        OnlineSVC(kernel=share, calibration="sigmoid", random_state=0).fit(words, y),
        OnlineSVC(kernel=share, calibration="sigmoid").partial_fit(words, y),
    ):
        p = model.predict_proba(["aaaa", "bcdf"])
        assert p[0, 1] > 0.7
        assert p[1, 0] > 0.7


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_duplicated_rows() -> None:
    X, y = blobs(30, 26, 2)
    model = calibrated(OnlineSVC(gamma=0.5, random_state=0)).fit(
        X.repeat(50, axis=0), y.repeat(50, axis=0)
    )
    assert np.isfinite(model.predict_proba(NEW)).all()
    model = calibrated(OnlineSVC(gamma=0.5)).fit(np.ones((40, 2)), np.arange(40) % 2)
    assert model.predict_proba([[1.0, 1.0]])[0] == pytest.approx([0.5, 0.5], abs=0.01)


# -- sources -----------------------------------------------------------------------------------


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CHUNK", 400)


def from_source(y: Any, X: Any, **options: Any) -> Any:
    params = {"calibration": "sigmoid", "random_state": 0, "epochs": 2, "multiclass": "ovr"}
    model = OnlineSVC(gamma=0.5, **params)
    return model.learn_from(Rows(X, y), **options)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sift", [None, 0.1])
@pytest.mark.usefixtures("small_chunks")
def test_learning_from_a_source(sift: float | None, classes: int) -> None:
    X, y = blobs(2000, 27, classes)
    model = from_source(y, X, sift=sift)
    # With sift, 256 rows of each chunk but the first, whichever of them are learned.
    expected = 2000 if sift is None else 4 * 256
    assert ((0.97 * expected < noted(model).seen) & (noted(model).seen <= expected)).all()


@pytest.mark.parametrize("sift", [None, 0.1])
@pytest.mark.usefixtures("small_chunks")
def test_a_run_that_is_resumed(sift: float | None, tmp_path: Path) -> None:
    X, y = blobs(2000, 28, 2)
    whole = from_source(y, X, sift=sift, callback=lambda model, moment: None)

    def stop(model: Any, moment: Any) -> None:
        if moment.examples >= 1200:
            raise KeyboardInterrupt

    path = tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt):
        from_source(y, X, sift=sift, callback=stop, checkpoint=path, checkpoint_minutes=0)
    resumed = from_source(y, X, sift=sift, checkpoint=path)
    assert_same_foresight(whole, resumed)
    assert np.array_equal(whole.predict_proba(NEW), resumed.predict_proba(NEW))


# -- all or nothing ----------------------------------------------------------------------------


def failing(model: Any, X: Any, y: Any) -> list[Callable[[], Any]]:
    bad = X.copy()
    bad[-1, 0] = np.nan
    return [
        lambda: model.fit(bad, y),
        lambda: model.partial_fit(bad, y),
        lambda: model.learn_many(bad, y),
        lambda: model.partial_fit(X, y, sample_weight=-np.ones(len(y))),
        lambda: model.set_params(calibration="platt").partial_fit(X, y),
    ]


@each(CLASSIFIERS)
def test_a_call_that_fails_leaves_probabilities(estimator: Any) -> None:
    X, y = blobs(120, 29, 3)
    model = begun(estimator, X, y)
    p, foresight = model.predict_proba(NEW), noted(model)
    for call in failing(model, X, y):
        with pytest.raises(ValueError, match=r"NaN|sample_weight|calibration|finite"):
            call()
        model.set_params(calibration="sigmoid")
        assert np.array_equal(model.predict_proba(NEW), p)
    for name, values in vars(foresight).items():
        assert np.array_equal(values, getattr(noted(model), name))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.98])
def test_an_interrupt_leaves_probabilities(share: float) -> None:
    """A fit that is interrupted leaves the model that was there before."""
    calls, last = 0, np.inf

    def kernel(A: Any, B: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= last:
            raise KeyboardInterrupt
        return np.asarray(A) @ np.asarray(B).T

    X, y = blobs(120, 30, 2)
    model = OnlineSVC(kernel=kernel, calibration="sigmoid", random_state=0).fit(X, y)
    made = calls
    p = model.predict_proba(NEW)
    calls, last = 0, max(1, int(share * made))
    with pytest.raises(KeyboardInterrupt):
        model.set_params(C=9.0).fit(X, y)
    last = np.inf
    assert np.array_equal(model.predict_proba(NEW), p)
