"""Bad input to the exact estimators: an error that names it, and a model that is as it was."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from marginwise import ExactOneClassSVM, ExactSVC, ModelFileError, load, save
from tests.property.test_model_files import Forged
from tests.support import Rows, differences, rings

X, Y = rings(40, 0, noise=0.1)
X.flags.writeable = Y.flags.writeable = False
KINDS = [ExactSVC, ExactOneClassSVM]
Kind = Callable[..., Any]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def learn(model: Any, rows: Any, labels: Any = Y, **more: Any) -> Any:
    """Learn more rows, of two classes or of one."""
    if isinstance(model, ExactOneClassSVM):
        return model.partial_fit(rows, **more)
    return model.partial_fit(rows, np.asarray(labels)[: rows.shape[0]], classes=[0, 1], **more)


def fit(model: Any, rows: Any) -> Any:
    return model.fit(rows) if isinstance(model, ExactOneClassSVM) else model.fit(rows, Y)


def standing(model: Any) -> dict[str, Any]:
    """All of a model's state; of places their order alone, for a copy closes them up."""
    state: dict[str, Any] = pickle.loads(
        pickle.dumps({k: v for k, v in model.__getstate__().items() if k != "kernel"})
    )
    if "_machine" in state:
        rank = state["_machine"]["rank"]
        order = np.argsort(np.argsort(rank, axis=1, kind="stable"), axis=1)
        state["_machine"]["rank"] = np.where(rank >= 0, order, -1)
    return state


def refused(
    model: Any, call: Callable[[], Any], *expected: str, error: type[Exception] = ValueError
) -> str:
    """Check that `call` raises an error naming all that is expected and changes nothing."""
    before = standing(model)
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    for words in expected:
        assert re.search(words, message), f"the message should mention {words!r}: {message}"
    found = differences(before, standing(model))
    assert not found, f"after the error {message!r}: {found}"
    return message


# -- parameters -----------------------------------------------------------------------------------

COMMON: list[tuple[str, Any, str]] = [
    ("window", 1, "2"),
    ("window", 0, "2"),
    ("window", 2.5, "integer"),
    ("window", True, "integer"),
    ("evict", "x", "'lightest'"),
    ("evict", None, "'oldest'"),
    ("record", "yes", "True or False"),
    ("C", -1.0, "above 0"),
    ("C", 0.0, "above 0"),
    ("C", np.nan, "number"),
    ("kernel", "gaussian", "'rbf'"),
    ("gamma", -1.0, "above 0"),
    ("degree", 0, "integer"),
    ("cache_size", 0, "above 0"),
    ("n_jobs", 0, "other than 0"),
]
OWN: dict[Any, list[tuple[str, Any, str]]] = {
    ExactSVC: [("C", None, "number"), ("class_weight", {0: -1.0}, "above 0")],
    ExactOneClassSVM: [
        ("nu", 0.0, "0"),
        ("nu", 2.0, "1"),
        ("nu", -0.5, "0"),
        ("nu", np.nan, "number"),
        ("nu", "some", "number"),
        ("nu", True, "number"),
    ],
}
BAD_PARAMETERS = [
    pytest.param(kind, *bad, id=f"{kind.__name__}-{bad[0]}-{bad[1]}")
    for kind in KINDS
    for bad in COMMON + OWN[kind]
]


@pytest.mark.parametrize(("kind", "name", "value", "expected"), BAD_PARAMETERS)
def test_bad_parameter(kind: Kind, name: str, value: Any, expected: str) -> None:
    fresh = kind(**{name: value})
    message = refused(fresh, lambda: fit(fresh, X), rf"\b{name}\b", expected)
    assert repr(value) in message, f"the message should show what was given: {message}"
    assert kind.__name__ in message
    refused(fresh, lambda: learn(fresh, X), rf"\b{name}\b")
    model = learn(kind(gamma=1.0), X).set_params(**{name: value})
    refused(model, lambda: learn(model, X), rf"\b{name}\b", expected)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, -np.inf, "2", None, True])
def test_bad_c_to_change_to(value: Any) -> None:
    model = ExactSVC(gamma=1.0).fit(X, Y)
    refused(model, lambda: model.set_C(value), r"\bC\b", "above 0")


# -- forgetting -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "named"),
    [
        ([77], ["77"]),
        ([1, 2, 99, 3], ["99"]),
        ([-1], ["-1"]),
        (list(range(30, 50)), ["40", "41", "and 5 more"]),
        (40, ["40"]),
    ],
    ids=str,
)
def test_an_unknown_id_forgets_nothing(kind: Kind, ids: Any, named: list[str]) -> None:
    model = fit(kind(gamma=1.0), X)
    refused(model, lambda: model.forget(ids), *named, error=KeyError)


def test_an_id_that_was_forgotten_is_unknown(kind: Kind) -> None:
    model = fit(kind(gamma=1.0), X).forget([4, 5])
    refused(model, lambda: model.forget([3, 4]), r"\b4\b", error=KeyError)
    windowed = learn(kind(gamma=1.0, window=5, evict="oldest"), X)
    refused(windowed, lambda: windowed.forget([0]), r"\b0\b", error=KeyError)


@pytest.mark.parametrize(
    "ids", [[1.0], [0.5], "3", ["a"], [[1, 2]], True, [True], None, 1.5, {1, 2}], ids=str
)
def test_ids_that_are_no_integers(kind: Kind, ids: Any) -> None:
    model = fit(kind(gamma=1.0), X)
    refused(model, lambda: model.forget(ids), "ids", "integers")


def test_an_id_beyond_64_bits_is_no_other_id(kind: Kind) -> None:
    model = learn(kind(gamma=1.0), X, ids=np.arange(-1, 39))
    for ids in (np.array([2**64 - 1], dtype=np.uint64), 2**80):
        with pytest.raises((KeyError, ValueError)):
            model.forget(ids)
        assert -1 in model.ids_, f"{ids} was taken for -1"


# -- learning -------------------------------------------------------------------------------------


def test_an_id_learned_twice(kind: Kind) -> None:
    model = fit(kind(gamma=1.0), X)
    refused(model, lambda: learn(model, X[:2], ids=[50, 7]), r"\b7\b", "learned already")
    refused(model, lambda: learn(model, X[:3], ids=[50, 51, 50]), r"\b50\b", "twice")
    fresh = kind(gamma=1.0)
    refused(fresh, lambda: learn(fresh, X[:3], ids=[1, 2, 1]), r"\b1\b", "twice")
    learn(model, X[:2], ids=[50, 51])
    assert {50, 51} <= set(model.ids_.tolist())


def test_the_running_count_goes_on_after_ids_of_ones_own(kind: Kind) -> None:
    model = learn(kind(gamma=1.0), X[:1], ids=[5])
    learn(model, X[1:10])
    assert len(model.ids_) == 10
    model = learn(kind(gamma=1.0), X[:3], ids=[10**6, 3, -4])
    learn(model, X[3:10])
    assert len(model.ids_) == 10


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_not_finite(kind: Kind, value: float, form: Any) -> None:
    bad = np.array(X)
    bad[7, 1] = value
    words = "NaN" if np.isnan(value) else "infinity"
    fresh, model = kind(gamma=1.0), learn(kind(gamma=1.0), X)
    refused(fresh, lambda: learn(fresh, form(bad)), words, r"\brow 7\b")
    refused(model, lambda: learn(model, form(bad)), words, r"\brow 7\b")
    refused(model, lambda: fit(model, form(bad)), words)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_a_row_beyond_all_bounds_in_the_middle(kind: Kind, value: float) -> None:
    """What is found while learning leaves the rows before it unlearned."""
    bad = np.array(X[:10])
    bad[7, 1] = value
    model = learn(kind(gamma=1.0), X)
    refused(model, lambda: learn(model, bad))
    if kind is ExactSVC:
        refused(model, lambda: model.learn_many(bad, Y[:10]))
    learn(model, X[:10])
    assert len(model.ids_) == 50


def test_a_source_that_fails_half_way() -> None:
    class Torn(Rows):
        def read(self, ids: np.ndarray) -> tuple[Any, np.ndarray]:
            if len(ids) < len(self) and ids.max() > 3000:
                raise OSError("the disk is gone")
            return super().read(ids)

    big = np.tile(X, (125, 1)) + np.random.default_rng(0).normal(scale=0.01, size=(5000, 2))
    model = ExactSVC(gamma=1.0, C=0.1).fit(X, Y)
    refused(model, lambda: model.learn_from(Torn(big, np.tile(Y, 125))), "disk", error=OSError)
    bad = np.array(X)
    bad[30] = np.nan
    refused(model, lambda: model.learn_from(Rows(bad, Y)), "NaN")
    refused(model, lambda: model.learn_from(Rows(X[:0], Y[:0])), "empty")


def test_labels_and_classes() -> None:
    model = ExactSVC(gamma=1.0)
    refused(model, lambda: model.partial_fit(X, Y), "classes", "first call")
    refused(model, lambda: model.fit(X, np.ones(40, dtype=int)), "one class", "two classes")
    refused(model, lambda: model.partial_fit(X, Y, classes=[1]), "two classes")
    model.fit(X, Y)
    refused(model, lambda: model.partial_fit(X, Y + 6), r"\b6\b", r"\[0, 1\]")
    refused(model, lambda: model.learn_one(X[0], 7), r"\b7\b", r"\[0, 1\]")
    refused(model, lambda: model.partial_fit(X, Y, classes=[0, 1, 2]), "classes")
    refused(model, lambda: model.partial_fit(X, Y[:-1]), "inconsistent|samples")


def test_shapes_and_weights(kind: Kind) -> None:
    model = fit(kind(gamma=1.0), X)
    wide = np.hstack([X, X])
    refused(model, lambda: learn(model, wide), r"\b2 features", r"\b4\b")
    refused(model, lambda: model.predict(wide), r"\b2 features", r"\b4\b")
    refused(model, lambda: learn(model, X[0]), "2D array|shape")
    refused(model, lambda: learn(model, X[:0]), "0 sample")
    weights = np.ones(40)
    weights[6] = -1.0
    refused(model, lambda: learn(model, X, sample_weight=weights), "sample_weight", "row 6")
    refused(model, lambda: learn(model, X, sample_weight=np.zeros(40)), "sample_weight", "zero")
    refused(model, lambda: learn(model, X, sample_weight=[1.0, 2.0]), "sample_weight", "40")
    refused(model, lambda: learn(model, X, ids=np.arange(39)), "ids", "40")
    refused(model, lambda: learn(model, X, ids=np.arange(40.0)), "ids", "integers")


def test_precomputed_matrices(kind: Kind) -> None:
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    model = kind(kernel="precomputed")
    refused(model, lambda: fit(model, K[:, :-1]), "precomputed", "square", "40", "39")
    refused(model, lambda: learn(model, K[:2], ids=[3, 40]), "precomputed", "columns")
    fit(model, K)
    refused(model, lambda: learn(model, K[:1]), "precomputed", "columns")
    model.forget([3])
    learn(model, K[3:4], Y[3:4], ids=[3])
    assert sorted(model.ids_.tolist()) == list(range(40))


def test_a_sphere_of_uneven_precomputed_lengths() -> None:
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    K[5, 5] = 2.0
    model = ExactOneClassSVM(kernel="precomputed")
    refused(model, lambda: model.fit(K), r"\brow 5\b", "Normalise")
    refused(model, lambda: model.partial_fit(K), r"\brow 5\b")
    model.partial_fit(K[:5])
    refused(model, lambda: model.partial_fit(K[5:6]), r"\brow 0\b")


# -- a kernel that fails --------------------------------------------------------------------------


class Fragile:
    """A kernel that raises once it has been asked a number of times."""

    def __init__(self) -> None:
        self.left = 10**9
        self.error: type[BaseException] = RuntimeError

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        self.left -= 1
        if self.left < 0:
            raise self.error("the kernel is gone")
        return np.asarray(np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2)))


CALLS: dict[str, Callable[[Any], Any]] = {
    "partial_fit": lambda model: learn(model, X[20:], Y[20:]),
    "fit": lambda model: fit(model, X),
    "forget": lambda model: model.forget(model.support_[:4]),
    "set_C": lambda model: model.set_C(50.0),
    "leave_one_out": lambda model: model.leave_one_out(),
    "learn_one": lambda model: model.learn_one(X[30], Y[30]),
}


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        *((ExactSVC, call) for call in CALLS),
        *((ExactOneClassSVM, call) for call in ("partial_fit", "fit", "forget")),
    ],
)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_kernel_that_fails_leaves_the_model_as_it_was(
    kind: Kind, call: str, error: type[BaseException]
) -> None:
    kernel = Fragile()
    model = learn(kind(kernel=kernel, cache_size=1e-6), X[:20])
    kernel.error = error
    failed = 0
    for left in (0, 1, 2, 5, 9, 17):
        before, kernel.left = standing(model), left
        try:
            CALLS[call](model)
            break
        except error:
            failed += 1
        finally:
            kernel.left = 10**9
        f = model.decision_function(X)
        found = differences(before, standing(model))
        assert not found, f"{call} failing at {left}: {found}"
        model._engine.native.check(1e-9)
        assert np.isfinite(f).all()
    assert failed or call == "leave_one_out"
    CALLS[call](model)
    model._engine.native.check(1e-9)


def test_a_kernel_of_the_wrong_shape(kind: Kind) -> None:
    model = kind(kernel=lambda A, B: np.ones((A.shape[0], 3)))
    refused(model, lambda: learn(model, X), "kernel")


# -- before anything was learned ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["support_", "ids_", "dual_coef_", "intercept_", "path_"])
def test_attribute_before_anything_was_learned(kind: Kind, name: str) -> None:
    with pytest.raises(NotFittedError, match=kind.__name__):
        getattr(kind(record=True), name)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("forget", ([1],)),
        ("forget", ([],)),
        ("predict", (X,)),
        ("decision_function", (X,)),
        ("score_samples", (X,)),
        ("leave_one_out", ()),
        ("set_C", (2.0,)),
        ("learn_one", (X[0], 1)),
        ("learn_many", (X, Y)),
        ("dual_objective", ()),
    ],
)
def test_call_before_anything_was_learned(kind: Kind, name: str, arguments: Any) -> None:
    model = kind()
    if not hasattr(kind, name):
        return
    with pytest.raises(NotFittedError, match=kind.__name__):
        getattr(model, name)(*arguments)


# -- hostile files --------------------------------------------------------------------------------


def saved(model: Any, folder: Path) -> bytes:
    save(model, folder / "honest.mwz")
    return (folder / "honest.mwz").read_bytes()


def attempt(data: bytes, folder: Path) -> Any:
    """A model, or None if the file is refused; nothing else may happen."""
    path = folder / "strange.mwz"
    path.write_bytes(data)
    try:
        return load(path)
    except ModelFileError:
        return None


def model_to_store(kind: Kind) -> Any:
    model = learn(kind(gamma=1.0, record=True, **({"C": 3.0} if kind is ExactSVC else {})), X)
    return model.forget(model.support_[:3])


def test_flipped_bits(kind: Kind, tmp_path: Path, seed: int) -> None:
    model = model_to_store(kind)
    data, rng = saved(model, tmp_path), np.random.default_rng(seed)
    f = model.decision_function(X)
    for at in rng.integers(len(data), size=100):
        changed = bytearray(data)
        changed[at] ^= 1 << rng.integers(8)
        found = attempt(bytes(changed), tmp_path)
        assert found is None or np.array_equal(found.decision_function(X), f)
    for length in rng.integers(len(data), size=20):
        assert attempt(data[:length], tmp_path) is None


Lie = Callable[[Forged], Any]


def put(name: str, at: Any, value: Any) -> Lie:
    return lambda forged: forged.put(name, at, value)


def change(name: str, changed: Callable[[Any], Any]) -> Lie:
    return lambda forged: forged.change(f"_machine.{name}", changed)


def doubled(margin: np.ndarray) -> np.ndarray:
    inside = np.flatnonzero(margin >= 0)
    margin[inside[0]] = margin[inside[1]]
    return margin


def turned(factor: np.ndarray) -> np.ndarray:
    factor[0] = 1 - factor[0]
    return factor


LIES: dict[str, Lie] = {
    "a factor that is not finite": put("factor", -1, np.nan),
    "a factor that is infinite": put("factor", -1, np.inf),
    "a factor without a diagonal": put("factor", -1, 0.0),
    "a factor with a negative diagonal": put("factor", -1, -1.0),
    "a factor that is too short": change("factor", lambda a: a[:-1]),
    "a factor that is too long": change("factor", lambda a: np.append(a, 1.0)),
    "a factor of single precision": change("factor", np.float32),
    "no factor": change("factor", lambda a: a[:0]),
    "a hole that is none": lambda forged: forged.change("_machine.factor", turned),
    "too many slots": put("slots", 0, 10**6),
    "slots below zero": put("slots", 0, -1),
    "too few slots": put("slots", 0, 1),
    "slots of floats": change("slots", np.float64),
    "a margin beyond the members": put("margin", -1, 10**6),
    "a margin below the members": put("margin", -1, -2),
    "a margin that names a member twice": change("margin", doubled),
    "a margin of floats": change("margin", np.float64),
    "notes that are short": change("notes", lambda a: a[:, :-2]),
    "notes that are not finite": put("notes", (0, 2), np.nan),
    "counts below zero": put("notes", (0, 0), -1.0),
    "a box that is unknown": put("box", (0, 0), 1),
    "labels beyond the classes": put("labels", 0, 7),
    "coefficients out of their box": put("alpha", (0, 0), 1e9),
    "steps from nowhere": lambda forged: forged.arrays["_steps"].__setitem__((0, 3), 4),
    "steps of no problem": lambda forged: forged.arrays["_steps"].__setitem__((0, 2), 9),
    "steps of other width": lambda forged: forged.change("_steps", lambda a: a[:, :4]),
    "settings that are unknown": lambda forged: forged.settings.update(more=1),
    "settings that lack": lambda forged: forged.settings.pop("window"),
    "a window below zero": lambda forged: forged.settings.update(window=-1),
    "nu beyond one": lambda forged: forged.settings.update(nu=2.0, sphere=True),
    "single precision": lambda forged: forged.plan.update(double=False),
    "another algorithm": lambda forged: forged.plan.update(algorithm="gap"),
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_forged_files_are_refused(kind: Kind, lie: str, tmp_path: Path) -> None:
    forged = Forged(saved(model_to_store(kind), tmp_path))
    assert attempt(forged.seal(), tmp_path) is not None, "an honest copy is refused"
    LIES[lie](forged)
    assert attempt(forged.seal(), tmp_path) is None


def test_the_kinds_are_not_taken_for_each_other(kind: Kind, tmp_path: Path) -> None:
    forged = Forged(saved(model_to_store(kind), tmp_path))
    forged.settings.update(sphere=kind is ExactSVC)
    forged.settings.update(nu=0.0)
    assert attempt(forged.seal(), tmp_path) is None


WRONG: dict[str, Lie] = {
    "factor": change("factor", lambda a: np.where(a == 0, 0, a * 3.7)),
    "nearly singular": change("factor", lambda a: np.where((a > 0) & (a != 1), a * 1e-9, a)),
    "huge": change("factor", lambda a: np.where((a == 0) | (a == 1), a, 1e300)),
    "gradient": change("g", lambda a: a[:, ::-1].copy() * 1e6),
    "shift": put("notes", (0, 3), -5.0),
    "no shift": put("notes", (0, 3), 0.0),
    "large shift": put("notes", (0, 3), 1e300),
    "total": put("notes", (0, 4), 1e12),
    "reach": put("notes", (0, 2), -1e300),
    "indefinite": put("notes", (0, 1), 1.0),
    "margin": change("margin", lambda a: a[::-1].copy()),
    "costs": change("costs", lambda a: a * 1e6),
    "alpha": change("alpha", lambda a: a * 0),
}


@pytest.mark.parametrize("lie", WRONG)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_files_that_are_wrong_but_sound_do_no_harm(kind: Kind, lie: str, tmp_path: Path) -> None:
    """Whatever is believed, going on ends, and values are numbers."""
    forged = Forged(saved(model_to_store(kind), tmp_path))
    WRONG[lie](forged)
    model = attempt(forged.seal(), tmp_path)
    if model is None:
        return
    model.decision_function(X)
    model.forget(np.sort(model.ids_)[:5])
    learn(model, X + 0.01)
    if kind is ExactSVC:
        model.set_C(9.0)
        model.leave_one_out()
    model.forget(model.ids_)
    assert model.ids_.size == 0
    with pytest.raises(NotFittedError, match="is empty"):
        model.predict(X)
    assert np.shape(learn(model, X).predict(X)) == (40,)


def test_a_kernel_of_the_users_has_no_file(kind: Kind, tmp_path: Path) -> None:
    model = learn(kind(kernel=Fragile()), X)
    with pytest.raises((ValueError, TypeError), match="kernel"):
        save(model, tmp_path / "m.mwz")
    assert np.array_equal(
        pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X)
    )
