"""Forgetting by group, and receipts: laws over random problems."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from marginwise import ExactOneClassSVM, ExactSVC, load, save
from marginwise.removal import Receipt, model_digest, remove, verify_receipt
from marginwise.removal.solution import largest_violation
from tests.support import blobs, rings

NAMES = [f"customer-{k:02d}-Zoë" for k in range(12)]


def problem(seed: int, classes: int = 2, n: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels, and customers with unequal numbers of rows, some of them far out."""
    X, y = rings(n, seed, noise=0.1) if classes == 2 else blobs(n, seed, classes)
    rng = np.random.default_rng(seed)
    owner = rng.geometric(0.2, size=n).clip(1, len(NAMES)) - 1
    X[owner == 0] *= 3
    return X, y, np.array(NAMES, dtype=object)[owner]


def assert_close(model: Any, other: Any, X: Any, tolerance: float = 1e-8) -> None:
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(X), rtol=0, atol=tolerance
    )


# -- forgetting by group ---------------------------------------------------------------------------

PARAMS: list[dict[str, Any]] = [
    {},
    {"class_weight": "balanced", "C": 5.0},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "class_weight": "balanced"},
    {"gamma": 0.7, "C": 100.0},
]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("params", PARAMS, ids=str)
@settings(max_examples=5)
@given(
    number=st.integers(0, 10**6),
    gone=st.sets(st.sampled_from(NAMES[:8]), min_size=1, max_size=3),
)
def test_groups_that_are_forgotten_were_never_there(
    params: dict[str, Any], classes: int, number: int, gone: set[str]
) -> None:
    X, y, groups = problem(number, classes)
    gone &= set(groups)
    rest = ~np.isin(groups, sorted(gone))
    model = ExactSVC(**params).fit(X, y, groups=groups)
    if gone:
        receipt = remove(model, groups=sorted(gone), compare=True)
        assert receipt.rows_removed == np.sum(~rest)
        assert receipt.rows_left == np.sum(rest) == len(model.ids_)
        assert receipt.violation < 1e-9
        assert receipt.comparison is not None
        assert receipt.comparison["decision_difference"] < 1e-8
        assert receipt.comparison["objective_difference"] < 1e-10
        assert all(receipt.covers(name) == (name in gone) for name in NAMES)
        assert verify_receipt(receipt, model)
    assert model.groups_.tolist() == groups[model.ids_].tolist()
    assert_close(model, ExactSVC(**params).fit(X[rest], y[rest]), X)


@settings(max_examples=10)
@given(number=st.integers(0, 10**6), bounds=st.sampled_from([{"nu": 0.2}, {"C": 0.1}]))
def test_a_sphere_forgets_groups(number: int, bounds: dict[str, float]) -> None:
    X, _, groups = problem(number)
    model = ExactOneClassSVM(**bounds).fit(X, groups=groups)
    receipt = remove(model, groups=groups[:1], compare=True)
    assert receipt.violation < 1e-9
    assert receipt.comparison is not None
    assert receipt.comparison["decision_difference"] < 1e-8
    rest = groups != groups[0]
    assert_close(model, ExactOneClassSVM(**bounds).fit(X[rest]), X)


@settings(max_examples=10)
@given(
    number=st.integers(0, 10**6),
    window=st.integers(10, 40),
    evict=st.sampled_from(["lightest", "oldest"]),
    classes=st.integers(2, 3),
)
def test_a_window_forgets_groups(number: int, window: int, evict: Any, classes: int) -> None:
    """The model is the solution for the rows that are left in each problem."""
    X, y, groups = problem(number, classes)
    model = ExactSVC(gamma=0.7, window=window, evict=evict)
    model.partial_fit(X[:60], y[:60], classes=range(classes), groups=groups[:60])
    model.learn_many(X[60:80], y[60:80])
    model.partial_fit(X[80:], y[80:], groups=groups[80:])
    expected = [None if 60 <= row < 80 else groups[row] for row in model.ids_]
    assert model.groups_.tolist() == expected
    assert set(model._groups["ids"]) <= set(model.ids_.tolist()), "evicted rows lose their group"
    receipt = remove(model, groups=[groups[-1]], compare=True)
    assert groups[-1] not in model.groups_.tolist()
    assert receipt.violation < 1e-9
    assert receipt.comparison is not None
    assert receipt.comparison["decision_difference"] < 1e-8
    assert receipt.dependents["window"]["rows"] == window


def test_order_and_repetitions_do_not_matter(seed: int) -> None:
    X, y, groups = problem(seed)
    some = list(dict.fromkeys(groups))[:3]
    models = [ExactSVC().fit(X, y, groups=groups) for _ in range(3)]
    models[0].forget(groups=some)
    models[1].forget(groups=np.array([*some, *some[::-1]]))
    models[2].forget(np.flatnonzero(np.isin(groups, some)))
    assert len({model_digest(model) for model in models}) == 1


@pytest.mark.parametrize("way", ["fit", "partial_fit", "rows of one"])
def test_ways_of_learning_note_the_same_groups(way: str, seed: int) -> None:
    X, y, groups = problem(seed)
    if way == "fit":
        model = ExactSVC(gamma=1.0).fit(X, y, groups=list(groups))
    elif way == "partial_fit":
        model = ExactSVC(gamma=1.0).partial_fit(X, y, classes=[0, 1], groups=groups.astype(str))
    else:
        model = ExactSVC(gamma=1.0)
        for k in range(len(y)):
            model.partial_fit(X[[k]], y[[k]], classes=[0, 1], groups=groups[[k]])
    assert model.groups_.tolist() == groups.tolist()
    other = ExactSVC(gamma=1.0).fit(X, y, groups=groups)
    assert model_digest(model) == model_digest(other)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["grouped", "plain", "one", "forget", "forget group", "store", "set_C"]),
        st.integers(0, 7),
    ),
    min_size=1,
    max_size=14,
)


@pytest.mark.parametrize("window", [None, 6])
@settings(max_examples=30)
@given(program=STEPS)
def test_groups_follow_their_rows(window: int | None, program: list[Any]) -> None:
    """Whatever is learned, forgotten and evicted, groups_ has the group of every stored row."""
    X, y, groups = problem(1)
    model: Any = ExactSVC(gamma=1.0, window=window)
    model.partial_fit(X[:4], y[:4], classes=[0, 1], groups=groups[:4])
    known: dict[int, Any] = dict(enumerate(groups[:4]))
    for k, (verb, what) in enumerate(program):
        row = 10 + 2 * k
        rows, stored = [row, row + 1], np.sort(model.ids_)
        if verb == "grouped":
            model.partial_fit(X[rows], y[rows], ids=rows, groups=groups[rows])
            known |= {row: groups[row], row + 1: groups[row + 1]}
        elif verb == "plain":
            again = [what] if what not in stored else rows  # an id that may have had a group
            model.partial_fit(X[again], y[again], ids=again)
            known |= dict.fromkeys(again)
        elif verb == "one":
            known[model._engine.native.next_id] = None
            model.learn_one(X[row], y[row])
        elif verb == "forget":
            model.forget(stored[:what])
        elif verb == "forget group":
            some = [name for name in model.groups_.tolist() if name is not None][:1]
            model.forget(groups=some)
            assert not set(some) & set(model.groups_.tolist())
        elif verb == "store":
            model = pickle.loads(pickle.dumps(model))
        elif not model.is_empty_:
            model.set_C(1.0 + what)
        assert model.groups_.tolist() == [known[name] for name in model.ids_.tolist()]
        assert set(model._groups["ids"].tolist()) <= set(model.ids_.tolist())


# -- nothing remains -------------------------------------------------------------------------------


def traces(model: Any, folder: Path) -> bytes:
    """All that a model leaves on disk."""
    save(model, folder / "m.mwz")
    dumped = io.BytesIO()
    joblib.dump(model, dumped)
    return (folder / "m.mwz").read_bytes() + pickle.dumps(model) + dumped.getvalue()


@pytest.mark.parametrize("how", ["scale", "number", "window", "sparse", "one class"])
def test_nothing_of_a_customer_remains(how: str, tmp_path: Path, seed: int) -> None:
    X, y, _ = problem(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, size=90)
    groups = np.array([f"<{k % 30:03d}>" for k in range(90)], dtype=object)
    mine = groups == "<007>"
    secrets = [*X[mine].ravel(), *weights[mine]]
    words = ["<007>".encode(form) for form in ("utf-8", "utf-32-le", "utf-16-le")]
    rows = sp.csr_array(np.column_stack([np.zeros((90, 40)), X])) if how == "sparse" else X
    gamma: Any = "scale" if how == "scale" else 1.0
    given: dict[str, Any] = {"sample_weight": weights, "groups": groups}
    if how == "one class":
        model: Any = ExactOneClassSVM(gamma=gamma).fit(rows, **given)
    else:
        model = ExactSVC(gamma=gamma, window=60 if how == "window" else None).fit(rows, y, **given)
    stored = mine[model.ids_].any()
    before = traces(model, tmp_path)
    if how != "window":
        assert all(word in before for word in words[:1])
        assert np.float64(X[mine][0, 0]).tobytes() in before or model._engine.plan.scale != 1
    if stored:
        model.forget(groups=["<007>"])
    after = traces(model, tmp_path)
    assert not [word for word in words if word in after]
    assert not [value for value in secrets if np.float64(value).tobytes() in after]
    scaled = [value * model._engine.plan.scale for value in X[mine].ravel()]
    assert not [value for value in scaled if np.float64(value).tobytes() in after]


def test_receipts_contain_no_ids_groups_or_features(seed: int) -> None:
    X, y, _ = problem(seed)
    ids = 987_654_000 + np.arange(90)
    groups = [f"<{k % 30:03d}>" for k in range(90)]
    model = ExactSVC().partial_fit(X + 1e5, y, classes=[0, 1], ids=ids, groups=groups)
    text = remove(model, groups=["<000>"]).to_json()
    assert "<000>" not in text
    assert "987654" not in text
    assert not [value for value in (X[:, 0] + 1e5).tolist() if repr(value) in text]


def test_the_path_loses_removed_rows(seed: int) -> None:
    X, y, groups = problem(seed)
    model = ExactSVC(record=True, gamma=1.0).fit(X, y, groups=groups)
    gone = model.ids_[groups[model.ids_] == groups[0]]
    receipt = remove(model, groups=groups[:1])
    assert receipt.dependents["path"]["moves_dropped"] > 0
    assert len(model.path_) > 0
    assert not np.isin(model.path_["id"], gone).any()
    assert not np.isin(model.path_["cause"], gone).any()
    model.partial_fit(X[:1], y[:1])
    assert verify_receipt(receipt, model) is False


# -- files and copies ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["str", "int"])
@pytest.mark.parametrize("way", ["pickle", "file", "deepcopy", "joblib"])
def test_copies_have_the_same_groups_and_digest(way: str, kind: str, tmp_path: Path) -> None:
    X, y, names = problem(0)
    groups = names if kind == "str" else [NAMES.index(name) - 2 for name in names]
    model = ExactSVC(gamma=1.0, window=50).fit(X, y, groups=groups).partial_fit(X[:5], y[:5])
    model.forget(model.ids_[:7])
    if way == "file":
        save(model, tmp_path / "m.mwz")
        again = load(tmp_path / "m.mwz")
        assert model_digest(tmp_path / "m.mwz") == model_digest(model)
    elif way == "joblib":
        joblib.dump(model, tmp_path / "m.joblib")
        again = joblib.load(tmp_path / "m.joblib", mmap_mode="r")
    else:
        again = copy.deepcopy(model) if way == "deepcopy" else pickle.loads(pickle.dumps(model))
    assert again.groups_.tolist() == model.groups_.tolist()
    assert model_digest(again) == model_digest(model)
    some = next(name for name in model.groups_ if name is not None)
    for one in (model, again):
        one.forget(groups=[some]).partial_fit(X[5:9], y[5:9], groups=groups[5:9])
    assert model_digest(again) == model_digest(model)
    assert not hasattr(clone(model), "_groups")


def test_a_fit_drops_the_groups_of_before(seed: int) -> None:
    X, y, groups = problem(seed)
    model = ExactSVC(gamma=1.0).fit(X, y, groups=groups).fit(X, y)
    assert not hasattr(model, "groups_")
    assert model_digest(model) == model_digest(ExactSVC(gamma=1.0).fit(X, y))
    model.fit(X, y, groups=range(90))
    assert model.groups_.tolist() == list(range(90))


def test_digests_see_every_change(seed: int) -> None:
    X, y, groups = problem(seed)
    digests = {
        model_digest(model)
        for model in (
            ExactSVC(gamma=1.0),
            ExactSVC(gamma=1.0).fit(X, y),
            ExactSVC(gamma=1.0).fit(X, y, groups=groups),
            ExactSVC(gamma=1.0).fit(X, y, groups=[*groups[:-1], "another"]),
            ExactSVC(gamma=1.0, C=2.0).fit(X, y),
            ExactSVC(gamma=1.0).fit(X, y).forget([5]),
            ExactSVC(gamma=1.0).fit(X, 1 - y),
            ExactOneClassSVM(gamma=1.0).fit(X),
        )
    }
    assert len(digests) == 8


def test_files_of_earlier_formats_have_digests_and_no_groups() -> None:
    models = Path(__file__).parents[1] / "golden" / "models"
    for name in ("exact-v2", "exact-v3", "one_class-v2", "one_class-v3"):
        path = models / f"{name}.mwz"
        model = load(path)
        assert len(model_digest(path)) == 64
        assert not hasattr(model, "groups_")
        receipt = remove(model, ids=model.ids_[:2])
        assert receipt.violation < 1e-6
        assert verify_receipt(receipt, model)
        assert largest_violation(model) == receipt.violation


@settings(max_examples=20)
@given(text=st.text(max_size=8), salt=st.text(min_size=1, max_size=8))
def test_receipts_of_any_group_and_salt(text: str, salt: str) -> None:
    groups = [text, text + "x", text + "y"]
    model = ExactSVC(gamma=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1], groups=groups)
    receipt = remove(model, groups=[text + "y"], salt=salt)
    assert Receipt.from_json(receipt.to_json()) == receipt
    assert [receipt.covers(name, salt=salt) for name in groups] == [False, False, True]
    assert pickle.loads(pickle.dumps(model)).groups_.tolist() == groups[:2]
