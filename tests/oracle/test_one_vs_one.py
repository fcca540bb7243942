"""OnlineSVC(multiclass="ovo") against SVC, which separates classes in pairs, and what pairs keep.

A failure of the first part means that pairs are not the problems that libsvm solves: other rows,
signs, weights or votes. The others are laws that hold for one-vs-rest and must hold for pairs: one
model however it is computed, stopped and continued, and states that cannot lead the core astray.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import _ovr_decision_function

from marginwise import GapSVC, ModelFileError, OnlineSVC, OnlineSVCCV, load, save
from marginwise._engine.plan import pairs_classes
from marginwise._files.format import unpack, write_state
from marginwise._training.checkpoint import KIND
from marginwise.active import ActiveLearner, MarginRule, closeness
from tests.active_support import assert_same_learner, begun, pool, values_of
from tests.property.test_sift import set_sizes
from tests.support import (
    Rows,
    assert_same_model,
    assert_untouched,
    binary_values,
    blobs,
    core_state,
    is_open,
    kernel_values,
    signs_of,
)

CLASSES = 4
PAIRS = list(itertools.combinations(range(CLASSES), 2))
Learn = Callable[..., OnlineSVC]


def ovo(**params: Any) -> OnlineSVC:
    return OnlineSVC(
        **{"multiclass": "ovo", "C": 2.0, "gamma": 0.5, "random_state": 0, "n_jobs": 1, **params}
    )


def assert_in_pairs(model: OnlineSVC, y: np.ndarray) -> None:
    """Each problem holds rows of its two classes only, and some of both."""
    state, classes = core_state(model), len(model.classes_)
    assert np.array_equal(model.classes_[state["labels"]], y[state["ids"]])
    held, signs = is_open(state), signs_of(state["labels"], classes, "ovo").T
    assert held.shape == (classes * (classes - 1) // 2, len(state["ids"]))
    assert not held[signs == 0].any(), "a pair holds a row of another class"
    assert (held & (signs < 0)).any(axis=1).all()
    assert (held & (signs > 0)).any(axis=1).all()
    model._engine.native.check(1e-4)


# -- the solution -------------------------------------------------------------------------------


def coefficients_by_pair(svc: SVC, n: int) -> np.ndarray:
    """Signed coefficients of all rows in each pair (i, j), from the layout of libsvm.

    A support vector of class i has its coefficient against j > i in row j - 1, and one of class j
    that against i in row i; positive is class i.
    """
    owner = np.repeat(np.arange(CLASSES), svc.n_support_)
    alpha = np.zeros((len(PAIRS), n))
    for c, (i, j) in enumerate(PAIRS):
        for label, row in ((i, j - 1), (j, i)):
            alpha[c, svc.support_[owner == label]] = svc.dual_coef_[row, owner == label]
    return alpha


def assert_like_svc(
    model: OnlineSVC, svc: SVC, K: np.ndarray, X_test: Any, K_test: np.ndarray
) -> None:
    alpha = coefficients_by_pair(svc, len(K))
    optima = np.abs(alpha).sum(axis=1) - np.einsum("ci,ij,cj->c", alpha, K, alpha) / 2
    np.testing.assert_allclose(model.dual_objective(), optima, rtol=1e-4)
    assert np.sum(model.dual_objective()) == pytest.approx(optima.sum(), rel=1e-4)
    theirs = svc.decision_function(K_test)  # positive for the first class of a pair
    np.testing.assert_allclose(binary_values(model, X_test), -theirs, rtol=0, atol=5e-3)
    agreed = model.predict(X_test) == svc.predict(K_test)
    votes = np.sort(_ovr_decision_function(theirs < 0, np.zeros_like(theirs), CLASSES), axis=1)
    assert np.mean(agreed[votes[:, -1] > votes[:, -2]]) >= 0.99
    svc.set_params(decision_function_shape="ovr", break_ties=True)  # by confidence, as we do
    assert np.mean(model.predict(X_test) == svc.predict(K_test)) >= 0.99


KERNELS: dict[str, dict[str, Any]] = {
    "linear": {},
    "rbf": {"gamma": 0.5},
    "poly": {"gamma": 0.3, "coef0": 1.0, "degree": 2},
    "cosine": {},
}


def svc_of(K: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> SVC:
    svc = SVC(C=2.0, kernel="precomputed", decision_function_shape="ovo", tol=1e-6)
    return svc.fit(K, y, sample_weight=weights)


@pytest.mark.parametrize("form", ["dense", "csr", "lists"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_converged_pairs_are_those_of_svc(kernel: str, form: str, seed: int) -> None:
    """If they differ, a pair learned rows of others, or left out some of its own."""
    X, y = blobs(300, seed, CLASSES, 4)
    X_test, _ = blobs(100, seed + 1000, CLASSES, 4)
    if form == "lists":
        X, X_test = (np.hstack([A, np.zeros((len(A), 200))]) for A in (X, X_test))
        X[np.arange(300), 4 + np.arange(300) % 200] = 0.5
    K, K_test = (kernel_values(kernel, A, X, **KERNELS[kernel]) for A in (X, X_test))
    params = {"kernel": kernel, "tol": 1e-5, "epochs": "converge", **KERNELS[kernel]}
    model = ovo(**params).fit(X if form == "dense" else sp.csr_array(X), y)
    assert model._engine.plan.sparse == (form == "lists")
    test = X_test if form == "dense" else sp.csr_array(X_test)
    assert_like_svc(model, svc_of(K, y), K, test, K_test)
    assert_in_pairs(model, y)


BY_CLASS = {0: 0.3, 1: 1.0, 2: 2.0, 3: 5.0}


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("by_class", [None, BY_CLASS, "balanced"], ids=str)
def test_weights_count_in_each_pair(by_class: Any, by_row: bool, seed: int) -> None:
    """Balanced weights are those of all rows, not of a pair's; rows of weight 0 are in no pair."""
    X, y = blobs(400, seed, CLASSES, 3)
    y[(y == 3) & (np.arange(400) % 3 > 0)] = 0
    X_test, _ = blobs(100, seed + 1000, CLASSES, 3)
    given = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], size=400)
    given = given if by_row else np.ones(400)
    model = ovo(tol=1e-4, epochs="converge", class_weight=by_class)
    model.fit(X, y, sample_weight=given if by_row else None)
    kept = np.flatnonzero(given)
    assert np.isin(model.ids_, kept).all(), "a row of weight 0 was learned"
    weights = given[kept] * compute_sample_weight(by_class, y[kept])
    K, K_test = (kernel_values("rbf", A, X[kept], gamma=0.5) for A in (X[kept], X_test))
    assert_like_svc(model, svc_of(K, y[kept], weights), K, X_test, K_test)
    assert_in_pairs(model, y)


def test_names_of_classes_are_ordered_as_in_svc(seed: int) -> None:
    X, y = blobs(300, seed, CLASSES)
    names = np.array(["west", "east", "south", "north"])[y]
    svc = SVC(C=2.0, gamma=0.5, break_ties=True, tol=1e-6).fit(X, names)
    model = ovo(tol=1e-4, epochs="converge").fit(X, names)
    assert model.classes_.tolist() == svc.classes_.tolist()
    assert np.mean(model.predict(X) == svc.predict(X)) >= 0.99
    theirs = svc.set_params(decision_function_shape="ovo", break_ties=False).decision_function(X)
    votes = _ovr_decision_function(theirs < 0, np.clip(-theirs, -1, 1), CLASSES)
    near = np.abs(model.decision_function(X) - votes) < 5e-3
    assert near.mean() >= 0.98, "other votes, on more rows than rounding decides"
    np.testing.assert_allclose(binary_values(model, X), -theirs, atol=5e-3)
    assert model.n_support_.shape == svc.n_support_.shape == (CLASSES,)
    assert model.n_support_.sum() == len(model.support_)


# -- votes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [3, 4, 9])
def test_decision_values_are_the_votes_of_scikit_learn(classes: int, seed: int) -> None:
    """Except that decision values beyond the margin count as those on it."""
    X, y = blobs(400, seed, classes, 3)
    model = ovo().fit(X, y)
    f = binary_values(model, X)
    assert f.shape == (400, classes * (classes - 1) // 2)
    expected = _ovr_decision_function(f > 0, np.clip(f, -1, 1), classes)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-14, atol=1e-14)
    assert model.predict(X).tolist() == expected.argmax(axis=1).tolist()
    by_hand = kernel_values("rbf", X, model.support_vectors_, gamma=0.5) @ model.dual_coef_.T
    np.testing.assert_allclose(f, by_hand + model.intercept_, rtol=0, atol=1e-4)
    assert model.score(X, y) > 0.5


def test_a_pair_that_is_undecided_votes_for_its_first_class() -> None:
    """A pair of classes that have not come yet has f = 0; scikit-learn's votes go this way."""
    model = ovo().partial_fit([[0.0, 0.0]], [1], classes=[0, 1, 2])
    rows = np.array([[0.0, 0.0], [5.0, 1.0]])
    f = binary_values(model, rows)
    assert f.tolist() == [[1.0, 0.0, -1.0]] * 2, "all is class 1 so far, and nothing 0 or 2"
    expected = _ovr_decision_function(f > 0, f, 3)
    np.testing.assert_array_equal(model.decision_function(rows), expected)
    assert expected[0].round().tolist() == [1, 2, 0]
    assert model.predict(rows).tolist() == [1, 1]


# -- which rows a pair holds --------------------------------------------------------------------


LEARNED: dict[str, Learn] = {
    "fit": lambda X, y: ovo(C=0.5).fit(X, y),
    "epochs": lambda X, y: ovo(C=0.5, epochs=3, finish_at_end=False).fit(X, y),
    "converge": lambda X, y: ovo(C=0.5, epochs="converge").fit(X, y),
    "partial_fit": lambda X, y: ovo(C=0.5).partial_fit(X, y, classes=range(CLASSES)),
    "pools": lambda X, y: ovo(C=0.5, selection="gradient", pool_size=10).fit(X, y),
    "full search": lambda X, y: ovo(C=0.5, selection="gradient", pool_size=None).fit(X, y),
    "learn_from": lambda X, y: ovo(C=0.5).learn_from(Rows(X, y)),
    "sift": lambda X, y: ovo(C=0.5).learn_from(Rows(X, y), sift=0.05),
    "selection and sift": lambda X, y: ovo(C=0.5, selection="gradient").learn_from(
        Rows(X, y), sift=0
    ),
}


@pytest.mark.parametrize("way", LEARNED)
def test_a_pair_holds_rows_of_its_classes_only(
    way: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others would move its boundary, and cost time and memory at every step."""
    set_sizes(monkeypatch, 200)
    X, y = blobs(700, seed, CLASSES, 3)
    model = LEARNED[way](X, y)
    assert_in_pairs(model, y)
    used = (model.dual_coef_ != 0).sum(axis=0)
    assert used.max() <= CLASSES - 1, "a row has a coefficient in a pair of other classes"
    assert model.score(X, y) > 0.6


# -- one model, however it is computed ----------------------------------------------------------


@pytest.mark.parametrize(
    "cuts", [[1], [2, 3, 5], [64], [65, 129], range(1, 200, 7), [199]], ids=str
)
def test_a_stream_may_be_cut_anywhere(cuts: Any, seed: int) -> None:
    X, y = blobs(200, seed, CLASSES, 3)
    whole = ovo().partial_fit(X, y, classes=range(CLASSES))
    parts = ovo()
    for start, end in itertools.pairwise([0, *cuts, 200]):
        parts.partial_fit(X[start:end], y[start:end], classes=range(CLASSES))
    assert_same_model(whole, parts, f"cut at {cuts}")


def test_one_row_at_a_time_is_the_same(seed: int) -> None:
    X, y = blobs(200, seed, CLASSES, 3)
    whole = ovo().partial_fit(X, y, classes=range(CLASSES))
    single = ovo().partial_fit(X[:1], y[:1], classes=range(CLASSES))
    for x, label in zip(X[1:], y[1:], strict=True):
        single.learn_one(x, label)
    assert_same_model(whole, single, "learn_one")
    assert_same_model(whole.finish(), single.finish(), "finished")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "params", [{}, {"epochs": "converge"}, {"selection": "gradient", "pool_size": 20}], ids=str
)
def test_threads_and_cache_do_not_change_the_model(
    params: dict[str, Any], sparse: bool, seed: int
) -> None:
    X, y = blobs(900, seed, CLASSES, 3)
    rows = sp.csr_array(np.hstack([X, np.zeros((900, 100))])) if sparse else X
    expected = ovo(**params).fit(rows, y)
    for change in ({"n_jobs": 2}, {"cache_size": 1}, {"cache_size": 1e-3, "n_jobs": 2}):
        assert_same_model(expected, ovo(**params, **change).fit(rows, y), f"{change}")
    np.testing.assert_array_equal(
        ovo(**params, n_jobs=2).fit(rows, y).decision_function(rows),
        expected.decision_function(rows),
    )


@pytest.mark.parametrize("epochs", [1, "converge"])
def test_two_classes_are_one_problem_either_way(epochs: Any, seed: int) -> None:
    X, y = blobs(300, seed, 2)
    models = [ovo(multiclass=how, epochs=epochs).fit(X, y) for how in ("ovo", "ovr", "auto")]
    assert models[0].decision_function(X).shape == (300,)
    for other in models[1:]:
        assert_same_model(models[0], other, other.multiclass)


# -- how many problems --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("multiclass", "classes", "problems"),
    [
        ("auto", 2, 1),
        ("auto", 3, 3),
        ("auto", 5, 10),
        ("auto", 40, 780),
        ("auto", 50, 1225),
        ("auto", 51, 1275),
        ("auto", 300, 300),  # 44,850 pairs of 1,200 rows
        ("ovo", 51, 1275),
        ("ovr", 5, 5),
    ],
)
def test_the_number_of_problems(multiclass: str, classes: int, problems: int) -> None:
    """Pairs of very many classes would take more time and memory than they are worth."""
    X, y = blobs(4 * classes, 0, classes, 3)
    model = ovo(multiclass=multiclass).fit(X, y)
    shapes = [model.intercept_.shape, np.shape(np.ravel(model.dual_objective()))]
    assert [*shapes, model.dual_coef_.shape[:1]] == [(problems,)] * 3
    assert model.decision_function(X).shape == ((len(X),) if classes == 2 else (len(X), classes))
    assert set(model.predict(X)) <= set(range(classes))


def clusters(classes: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 20 rows of each class, and a share of random labels."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), 20)
    X = 3 * rng.normal(size=(classes, 10))[truth] + rng.normal(size=(len(truth), 10))
    return X, np.where(rng.random(len(truth)) < noise, rng.integers(classes, size=len(X)), truth)


def test_fit_warns_where_noisy_labels_need_pairs(seed: int) -> None:
    X, y = clusters(200, 0.25, seed)
    with pytest.warns(UserWarning, match=r"set multiclass='ovo' \(19,900 binary problems\)"):
        model = ovo(multiclass="auto", gamma=0.01).fit(X, y)
    assert len(model.intercept_) == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "classes", "noise"),
    [
        ({"multiclass": "auto"}, 200, 0.0),
        ({"multiclass": "auto"}, 60, 0.25),
        ({"multiclass": "ovr"}, 200, 0.25),
        ({"multiclass": "ovo"}, 60, 0.25),
        ({"multiclass": "auto", "replay": 100}, 60, 0.25),
    ],
)
def test_fit_does_not_warn_elsewhere(
    params: dict[str, Any], classes: int, noise: float, seed: int
) -> None:
    ovo(gamma=0.01, **params).fit(*clusters(classes, noise, seed))  # warnings are errors


@pytest.mark.parametrize(
    ("selection", "problems"), [("random", 10), ("gradient", 5), ("active", 5), ("autoactive", 5)]
)
def test_by_default_classes_are_paired_where_no_row_is_selected(
    selection: str, problems: int
) -> None:
    X, y = blobs(100, 0, 5)
    assert len(OnlineSVC(selection=selection).fit(X, y).intercept_) == problems


def test_the_default_is_one_of_the_two(seed: int) -> None:
    X, y = blobs(300, seed, CLASSES)
    assert_same_model(ovo(multiclass="auto").fit(X, y), ovo().fit(X, y), "auto of 4 classes")
    chosen = {"selection": "gradient", "pool_size": 20}
    assert_same_model(
        ovo(multiclass="auto", **chosen).fit(X, y),
        ovo(multiclass="ovr", **chosen).fit(X, y),
        "auto with selection",
    )


# -- selection and sources ----------------------------------------------------------------------


@pytest.mark.parametrize("pool_size", [20, None])
def test_pairs_may_be_learned_by_their_gradient(pool_size: int | None, seed: int) -> None:
    """The row that contradicts a pair most is one of its classes."""
    X, y = blobs(1500, seed, CLASSES)
    X_test, y_test = blobs(1500, seed + 1000, CLASSES)
    model = ovo(selection="gradient", pool_size=pool_size).fit(X, y)
    assert_in_pairs(model, y)
    assert model.score(X_test, y_test) >= ovo().fit(X, y).score(X_test, y_test) - 0.02


def test_full_search_ends_near_the_solution_of_the_pairs(seed: int) -> None:
    """There unless a pair evicted a row, or did not want it when another one chose it."""
    X, y = blobs(300, seed, CLASSES)
    model = ovo(selection="gradient", pool_size=None, tol=1e-5).fit(X, y)
    optimum = ovo(epochs="converge", tol=1e-5).fit(X, y).dual_objective()
    assert (model.dual_objective() <= optimum * (1 + 1e-4)).all()
    assert (model.dual_objective() >= 0.85 * optimum).all()
    assert model.dual_objective().sum() >= 0.95 * optimum.sum()
    signs = signs_of(y, CLASSES, "ovo")
    margins = np.where(signs == 0, np.inf, signs * binary_values(model, X))
    left = np.setdiff1d(np.arange(300), model.ids_)
    assert np.mean(margins[left].min(axis=1) < 1 - 1e-3) <= 0.1, "rows that matter were left"


@pytest.mark.parametrize("selection", ["active", "autoactive"])
def test_rules_that_ignore_labels_cannot_have_pairs(selection: str) -> None:
    """Which pairs a row belongs to is known by its label only."""
    X, y = blobs(60, 0, 3)
    model = ovo(selection=selection)
    for learn in (
        lambda: model.fit(X, y),
        lambda: model.partial_fit(X, y, classes=[0, 1, 2]),
        lambda: model.learn_from(Rows(X, y)),
    ):
        with pytest.raises(ValueError, match="multiclass='ovo' needs the label"):
            learn()
    assert not hasattr(model, "classes_")
    model.set_params(multiclass="ovr").fit(X, y)


@pytest.mark.parametrize("multiclass", ["OVO", "one-vs-one", None, 1, True, "crammer_singer"])
def test_unknown_values_of_multiclass_are_refused(multiclass: Any) -> None:
    X, y = blobs(60, 0, 3)
    with pytest.raises(ValueError, match="multiclass must be one of 'auto', 'ovr', 'ovo'"):
        OnlineSVC(multiclass=multiclass).fit(X, y)
    fitted = OnlineSVC().fit(X, y)
    with pytest.raises(ValueError, match="multiclass"):
        fitted.set_params(multiclass=multiclass).partial_fit(X, y)


def test_the_parameter_applies_from_the_next_fit(seed: int) -> None:
    """A model continues with the problems that it has, whatever the parameter is by then."""
    X, y = blobs(300, seed, CLASSES)
    models = [ovo().partial_fit(X[:150], y[:150], classes=range(CLASSES)) for _ in range(2)]
    models[1].set_params(multiclass="ovr")
    for model in models:
        model.partial_fit(X[150:], y[150:])
    assert_same_model(*models, "set_params changed a model that exists")
    assert len(models[1].fit(X, y).intercept_) == CLASSES


def test_a_sifted_source_makes_as_good_a_model(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is worse, rows that a pair needs are taken for far, or for those of other classes."""
    set_sizes(monkeypatch, 400, STALE=1.5)
    X, y = blobs(6000, seed, CLASSES, 4)
    tallies: list[Any] = []
    sifted = ovo().learn_from(
        Rows(X[:4000], y[:4000]),
        sift=0.05,
        callback=lambda _, moment: tallies.append(moment.tally),
    )
    assert tallies[-1].sketches > 0
    assert tallies[-1].asked < tallies[-1].pairs == 4000 * len(PAIRS)
    assert_in_pairs(sifted, y)
    plain = ovo().fit(X[:4000], y[:4000])
    errors = [1 - model.score(X[4000:], y[4000:]) for model in (sifted, plain)]
    assert errors[0] <= errors[1] + 0.02


# -- files --------------------------------------------------------------------------------------


def restored(model: OnlineSVC, way: str, folder: Path) -> OnlineSVC:
    if way == "file":
        save(model, folder / "model.mwz")
        return load(folder / "model.mwz")
    return pickle.loads(pickle.dumps(model)) if way == "pickle" else copy.deepcopy(model)


@pytest.mark.parametrize("way", ["file", "pickle", "deepcopy"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_copy_continues_as_the_model(way: str, sparse: bool, seed: int, tmp_path: Path) -> None:
    """If it does not, the file has lost which classes a problem separates."""
    X, y = blobs(300, seed, CLASSES, 3)
    rows = sp.csr_array(np.hstack([X, np.zeros((300, 100))])) if sparse else X
    model = ovo().partial_fit(rows[:150], y[:150], classes=range(CLASSES))
    twin = restored(model, way, tmp_path)
    assert twin.get_params() == model.get_params()
    assert_same_model(model, twin, way)
    np.testing.assert_array_equal(twin.decision_function(rows), model.decision_function(rows))
    for each in (model, twin):
        each.partial_fit(rows[150:], y[150:]).finish()
        assert_in_pairs(each, y)
    assert_same_model(model, twin, f"continued after {way}")
    np.testing.assert_array_equal(twin.decision_function(rows), model.decision_function(rows))


Doctor = Callable[[dict[str, Any]], Any]


def plan_of(state: dict[str, Any]) -> dict[str, Any]:
    return state["_machine"]["plan"]


def put_with_strangers(state: dict[str, Any]) -> None:
    """Give a member to a pair that its class is not of."""
    machine = state["_machine"]
    free = (machine["rank"] < 0) & (signs_of(machine["labels"], CLASSES, "ovo").T == 0)
    c, s = (int(k[0]) for k in np.nonzero(free))
    machine["rank"][c, s] = machine["rank"][c].max() + 1


DOCTORED: dict[str, tuple[str, Doctor]] = {
    "one-vs-rest": ("problems must fit", lambda state: plan_of(state).update(pairs=False)),
    "one pair less": ("problems must fit", lambda state: plan_of(state).update(problems=5)),
    "one class more": ("problems must fit", lambda state: plan_of(state).update(problems=10)),
    "arrays of fewer pairs": (
        "must be an array",
        lambda state: state["_machine"].update(alpha=state["_machine"]["alpha"][:-1]),
    ),
    "no answer": ("pairs must be", lambda state: plan_of(state).update(pairs="yes")),
    "strangers": ("members of its classes only", put_with_strangers),
    "another label": (
        "members of its classes only",
        lambda state: state["_machine"]["labels"].__iadd__(1).__imod__(CLASSES),
    ),
    "unknown multiclass": ("multiclass must be", lambda state: state.update(multiclass="all")),
}


@pytest.mark.parametrize("name", DOCTORED)
def test_states_of_other_problems_are_refused(name: str, tmp_path: Path) -> None:
    """The core believes what it is told of pairs: a problem too many would be read past its end."""
    X, y = blobs(80, 0, CLASSES)
    message, doctor = DOCTORED[name]
    state = copy.deepcopy(ovo().fit(X, y)._stored_state())
    doctor(state)
    write_state(tmp_path / "model.mwz", "OnlineSVC", state)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "model.mwz")
    if name == "unknown multiclass":  # parameters may be anything until the next fit
        return
    with pytest.raises(ValueError, match=message):
        OnlineSVC.__new__(OnlineSVC).__setstate__(state)


@pytest.mark.parametrize("made", ["ovr", "ovo"])
def test_three_classes_cannot_pass_for_the_other_three_problems(made: str, tmp_path: Path) -> None:
    """Three classes are three problems either way; only the members tell them apart."""
    X, y = blobs(80, 0, 3)
    state = copy.deepcopy(ovo(multiclass=made).fit(X, y)._stored_state())
    plan_of(state)["pairs"] = made == "ovr"
    write_state(tmp_path / "model.mwz", "OnlineSVC", state)
    with pytest.raises(ModelFileError, match=r"of its classes only|alpha must lie between"):
        load(tmp_path / "model.mwz")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [GapSVC, OnlineSVC])
def test_pairs_of_those_who_have_none_are_refused(kind: Any, classes: int, tmp_path: Path) -> None:
    """GapSVC learns one-vs-rest only, and two classes are no pairs but one problem."""
    X, y = blobs(80, 0, classes)
    if kind is OnlineSVC and classes > 2:
        state = ovo().partial_fit(X, y, classes=range(3))._stored_state()
        state["classes_"], state["_balance"], state["_costs"] = (
            state[name][:2] for name in ("classes_", "_balance", "_costs")
        )
    else:
        state = kind(gamma=0.5, random_state=0).fit(X, y)._stored_state()
    state = copy.deepcopy(state)
    plan_of(state)["pairs"] = True
    write_state(tmp_path / "model.mwz", kind.__name__, state)
    with pytest.raises(ModelFileError, match="classes cannot be paired"):
        load(tmp_path / "model.mwz")
    with pytest.raises(ValueError, match="classes cannot be paired"):
        kind.__new__(kind).__setstate__(state)


def test_a_call_that_fails_leaves_the_pairs_as_they_were() -> None:
    X, y = blobs(200, 0, CLASSES)
    model = ovo().fit(X, y)
    before = copy.deepcopy(model.__getstate__())
    with pytest.raises(ValueError, match="unknown labels: 9"):
        model.partial_fit(X, np.where(np.arange(200) == 199, 9, y))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.where(np.arange(200)[:, None] == 199, np.nan, X), y)
    assert_untouched(before, model, "a refused call")


@pytest.mark.parametrize("sift", [None, 0.05])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    sift: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_sizes(monkeypatch, 200)
    X, y = blobs(1200, 0, CLASSES, 3)
    path = tmp_path / "run.mwz"
    run = {"sift": sift, "checkpoint": path, "checkpoint_minutes": 0.0}
    expected = ovo().learn_from(Rows(X, y), sift=sift, callback=lambda *_: None)
    stopped = ovo().learn_from(Rows(X, y), callback=lambda *_: True, **run)
    assert len(stopped.ids_) < len(expected.ids_)
    assert_same_model(expected, ovo().learn_from(Rows(X, y), **run), "continued")


# -- files of earlier versions ------------------------------------------------------------------


def without_pairs(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a model as it was before `multiclass` was there."""
    state = copy.deepcopy(state)
    del state["multiclass"]
    del state["_machine"]["plan"]["pairs"]
    return state


@pytest.mark.parametrize("way", ["file", "pickle"])
@pytest.mark.parametrize("classes", [2, CLASSES])
def test_earlier_files_are_one_vs_rest(way: str, classes: int, seed: int, tmp_path: Path) -> None:
    """They must not become pairs by a default that came later, now or when they continue."""
    X, y = blobs(300, seed, classes, 3)
    model = ovo(multiclass="ovr").partial_fit(X[:150], y[:150], classes=range(classes))
    early = without_pairs(model._stored_state())
    if way == "file":
        write_state(tmp_path / "early.mwz", "OnlineSVC", early)
        again = load(tmp_path / "early.mwz")
    else:
        again = OnlineSVC.__new__(OnlineSVC)
        again.__setstate__(early)
    assert again.get_params() == model.get_params()
    assert_same_model(model, again, way)
    for each in (model, again):
        each.partial_fit(X[150:], y[150:]).finish()
    assert_same_model(model, again, f"continued after {way}")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_same_model(model.fit(X, y), again.fit(X, y), "fitted again")


def test_earlier_files_of_unfitted_models_are_one_vs_rest(tmp_path: Path) -> None:
    state = OnlineSVC(C=3.0)._stored_state()
    del state["multiclass"]
    write_state(tmp_path / "early.mwz", "OnlineSVC", state)
    assert (
        load(tmp_path / "early.mwz").get_params() == OnlineSVC(C=3.0, multiclass="ovr").get_params()
    )


def test_earlier_runs_continue_one_vs_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_sizes(monkeypatch, 200)
    X, y = blobs(800, 0, CLASSES, 3)
    path = tmp_path / "run.mwz"
    run = {"checkpoint": path, "checkpoint_minutes": 0.0}
    ovo(multiclass="ovr").learn_from(Rows(X, y), callback=lambda *_: True, **run)
    _, state = unpack(path.read_bytes(), [KIND])
    state["model"] = without_pairs(state["model"])
    del state["parameters"]["multiclass"]
    write_state(path, KIND, state)
    with pytest.raises(ModelFileError, match="made with multiclass='ovr'"):
        ovo().learn_from(Rows(X, y), **run)
    expected = ovo(multiclass="ovr").learn_from(Rows(X, y), callback=lambda *_: None)
    found = ovo(multiclass="ovr").learn_from(Rows(X, y), **run)
    assert_same_model(expected, found, "continued")


def test_earlier_learners_are_one_vs_rest(tmp_path: Path) -> None:
    X, y = pool(60, classes=3)
    learner = begun(X, y, 15, estimator=OnlineSVC(C=10, multiclass="ovr"), classes=range(3))
    path = tmp_path / "learner.mwz"
    learner.save(path)
    _, state = unpack(path.read_bytes(), ["ActiveLearner"])
    del state["parameters"]["multiclass"]
    write_state(path, "ActiveLearner", state)
    assert_same_learner(learner, ActiveLearner.load(path, X), "an earlier file")


# -- active learning ----------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [3, 5])
def test_a_learner_measures_the_distance_from_the_nearest_boundary(classes: int, seed: int) -> None:
    """If a row that wins all its pairs seemed nearer than it is, learners would ask for it."""
    X, y = blobs(300, seed, classes)
    first = [int(np.flatnonzero(y == label)[0]) for label in range(classes)]
    learner = ActiveLearner(ovo(), X, classes=range(classes), random_state=seed)
    learner.teach(first, y[first])
    for _ in range(40):
        row = learner.ask()
        learner.teach(row, y[row])
    values, model = learner.decision_values(), learner.estimator_
    assert values.shape == (300, classes)
    np.testing.assert_allclose(values, values_of(model, X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.decision_values([3, 1]), values[[3, 1]], atol=1e-9)
    f = binary_values(model, X)
    pairs = list(itertools.combinations(range(classes), 2))
    met = 0
    for row, label in enumerate(model.predict(X)):
        own = [
            f[row, c] * (1 if pair[1] == label else -1)
            for c, pair in enumerate(pairs)
            if label in pair
        ]
        if min(own) <= 0:
            continue  # a row between three classes: none wins all its pairs
        met += 1
        assert values[row].argmax() == label
        assert values[row, label] == pytest.approx(min(own), abs=1e-9)
        ordered = np.sort(values[row])
        assert ordered[-1] - ordered[-2] >= 2 * min(own) - 1e-9
        assert closeness(values[[row]])[0] >= min(own) - 1e-9
    assert met > 200, "hardly any row has a clear winner: no test"


def test_a_learner_of_pairs_is_saved_and_continues(seed: int, tmp_path: Path) -> None:
    X, y = pool(80, seed, classes=3)
    learner = begun(X, y, 20, estimator=OnlineSVC(C=10, multiclass="ovo"), classes=range(3))
    learner.save(tmp_path / "learner.mwz")
    again = ActiveLearner.load(tmp_path / "learner.mwz", X)
    assert_same_learner(learner, again, "a file")
    for each in (learner, again):
        for _ in range(5):
            row = each.ask()
            each.teach(row, y[row])
    assert_same_learner(learner, again, "continued")


def test_a_stream_asks_for_the_rows_inside_a_margin(seed: int) -> None:
    """Votes of the best and the second class differ by less than 2: all rows would seem inside."""
    X, y = blobs(600, seed, 3)
    model = ovo(C=10.0, gamma=0.1).fit(3 * X, y)
    expected = closeness(values_of(model, 3 * X)) <= 1
    assert 0.05 < expected.mean() < 0.5, "no test"
    assert MarginRule(model).wants(3 * X).tolist() == expected.tolist()


def test_small_batches_of_many_classes_are_learned_without_a_warning(seed: int) -> None:
    X, y = clusters(60, 0.0, seed)  # warnings are errors
    model = OnlineSVC(gamma=0.01, multiclass="ovo").partial_fit(X[::40], y[::40], classes=range(60))
    model.partial_fit(X[::30], y[::30])
    with pytest.raises(ValueError, match="Unknown label type"):
        model.partial_fit(X, X[:, 0])


@pytest.mark.parametrize("rows", [10_101, 10_102])
def test_pairs_of_many_classes_depend_on_the_rows_of_fit(rows: int) -> None:
    model = OnlineSVC(multiclass="auto")
    assert pairs_classes(model, 100, rows) == (rows == 10_101)  # 4,950 pairs
    assert not pairs_classes(model, 100, None)  # a stream


@pytest.mark.parametrize(
    ("params", "most"),
    [
        ({}, 100),
        ({"epochs": 2, "shuffle": False, "calibration": "sigmoid"}, 100),
        ({"reprocess": 2}, 32),
        ({"reprocess": "gap"}, 32),
        ({"reprocess_when": "each"}, 32),
        ({"finish_at_end": False}, 32),
        ({"finish_every": 1000}, 32),
        ({"delta_max": 0.1}, 32),
        ({"budget": 200}, 32),
    ],
)
def test_many_pairs_are_trained_only_where_they_are_fast(params: dict[str, Any], most: int) -> None:
    model = OnlineSVC(multiclass="auto", **params)
    assert [k for k in (32, 33, 50, 51, 100, 101) if pairs_classes(model, k, 10_000)][-1] == most


@pytest.mark.slow
def test_a_search_trains_the_pairs_that_the_final_model_has() -> None:
    X, y = clusters(60, 0.1, 0)
    search = OnlineSVCCV(Cs=[1.0, 10.0], gammas=[0.01], cv=3, random_state=0).fit(X, y)
    one = OnlineSVC(C=search.C_, gamma=0.01, multiclass="ovo", random_state=0).fit(X, y)
    assert len(search.intercept_) == 1770
    assert np.array_equal(search.predict(X), one.predict(X))
