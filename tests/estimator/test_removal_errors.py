"""Bad input to groups, removals and receipts: an error that names it, and nothing is changed."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    ModelFileError,
    OnlineSVC,
    OnlineSVCCV,
    TrackingSVC,
    load,
    save,
)
from marginwise.removal import (
    Receipt,
    RemovalLog,
    model_digest,
    remove,
    remove_from_file,
    verify_receipt,
)
from tests.estimator.test_exact_errors import KINDS, Kind, attempt, learn, refused, saved
from tests.property.test_model_files import Forged
from tests.support import rings

X, Y = rings(40, 0, noise=0.1)
GROUPS = [f"customer-{k % 8}" for k in range(40)]
NUMBERS = [k % 8 for k in range(40)]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def fit(model: Any, **more: Any) -> Any:
    return model.fit(X, Y, **more)


# -- groups of rows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (GROUPS[:-1], [r"shape \(39,\)", "one group for each of 40 rows"]),
        ("customer", [r"shape \(\)", "40 rows"]),
        (7, [r"shape \(\)", "40 rows"]),
        (np.array([GROUPS]), [r"shape \(1, 40\)"]),
        (pd.DataFrame({"owner": GROUPS}), [r"shape \(40, 1\)"]),
        ([None, *GROUPS[1:]], [r"groups\[0\] is None", "string or an integer"]),
        ([*GROUPS[:-1], None], [r"groups\[39\] is None"]),
        (pd.Series([*NUMBERS[:-1], None]), [r"groups\[0\] is 0.0", "string or an integer"]),
        (np.arange(40.0), [r"groups\[0\] is 0.0"]),
        (np.arange(40) % 2 == 0, [r"groups\[0\] is True"]),
        ([b"x"] * 40, [r"groups\[0\] is b'x'"]),
        ([(1, 2)] * 40, [r"shape \(40, 2\)"]),
        ([*GROUPS[:-1], 5], [r"groups\[0\] is 'customer-0' and groups\[39\] is 5", "one kind"]),
        ([5, *GROUPS[1:]], [r"groups\[0\] is 5 and groups\[1\] is 'customer-1'"]),
        ([2**63, *NUMBERS[1:]], [r"groups\[0\] is 9223372036854775808", "64-bit", "Use strings"]),
    ],
    ids=lambda value: None if isinstance(value, list) else type(value).__name__,
)
def test_bad_groups(kind: Kind, groups: Any, expected: list[str]) -> None:
    fresh, model = kind(gamma=1.0), fit(kind(gamma=1.0), groups=GROUPS)
    for one in (fresh, model):
        refused(one, lambda one=one: fit(one, groups=groups), "groups", *expected)
        refused(one, lambda one=one: learn(one, X, Y, groups=groups), "groups", *expected)


def test_one_kind_of_groups_per_model(kind: Kind) -> None:
    model = fit(kind(gamma=1.0), groups=GROUPS)
    words = ["integers", "those of the stored rows are strings", "same kind"]
    refused(model, lambda: learn(model, X[:3], Y, groups=[1, 2, 3]), *words)
    learn(model, X[:3], Y)
    assert model.groups_.tolist() == [*GROUPS, None, None, None]
    numbered = fit(kind(gamma=1.0), groups=NUMBERS)
    refused(numbered, lambda: learn(numbered, X[:1], Y, groups=["1"]), "strings", "integers")


@pytest.mark.parametrize(
    "groups",
    [
        GROUPS,
        tuple(GROUPS),
        np.array(GROUPS),
        np.array(GROUPS, dtype=object),
        pd.Series(GROUPS, index=range(5, 45)),
        pd.Series(GROUPS, dtype="category"),
        pd.Series(GROUPS, dtype="string"),
        pd.Index(GROUPS),
    ],
    ids=lambda groups: f"{type(groups).__name__}-{getattr(groups, 'dtype', '')}",
)
def test_sequences_of_strings(groups: Any) -> None:
    model = fit(ExactSVC(gamma=1.0), groups=groups)
    assert model.groups_.tolist() == GROUPS
    assert {type(name) for name in model.groups_} == {str}
    assert model.groups_.dtype == object


@pytest.mark.parametrize(
    "groups",
    [
        NUMBERS,
        np.array(NUMBERS, dtype=np.uint8),
        np.array(NUMBERS),
        pd.Series(NUMBERS, dtype="Int64"),
    ],
    ids=lambda groups: f"{type(groups).__name__}-{getattr(groups, 'dtype', '')}",
)
def test_sequences_of_integers(groups: Any) -> None:
    model = fit(ExactSVC(gamma=1.0), groups=groups)
    assert model.groups_.tolist() == NUMBERS
    model.forget(groups=np.uint8(3))
    assert 3 not in model.groups_


def test_groups_without_any(kind: Kind) -> None:
    model = fit(kind(gamma=1.0))
    with pytest.raises(AttributeError, match="has no groups_: it was trained without groups"):
        model.groups_  # noqa: B018
    assert model.is_empty_ is False
    with pytest.raises(NotFittedError):
        kind().is_empty_  # noqa: B018
    words = ["groups without stored rows: 'ann', because no stored row has a group", "No row was"]
    refused(model, lambda: model.forget(groups=["ann"]), *words, error=KeyError)


def test_rows_of_weight_zero_have_no_group(kind: Kind) -> None:
    weights = np.where(np.arange(40) % 8 == 3, 0.0, 1.0)
    model = fit(kind(gamma=1.0), groups=GROUPS, sample_weight=weights)
    assert model.groups_.tolist() == [name for name in GROUPS if name != "customer-3"]
    refused(model, lambda: model.forget(groups=["customer-3"]), "customer-3", error=KeyError)
    learn(model, X[:2], Y, groups=["new", "none"], sample_weight=[1.0, 0.0])
    assert model.groups_[-1] == "new"
    assert len(model.groups_) == 36


# -- forgetting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "named"),
    [
        (["ann"], ["'ann'"]),
        (["customer-1", "ann"], ["'ann'"]),
        ("ann", ["'ann'"]),
        ([1], ["rows: 1 ", "are strings"]),
        ([f"x{k}" for k in range(9)], ["'x0', 'x1'", "and 4 more"]),
        (["customer"], ["'customer'"]),
    ],
    ids=str,
)
def test_an_unknown_group_forgets_nothing(kind: Kind, groups: Any, named: list[str]) -> None:
    model = fit(kind(gamma=1.0), groups=GROUPS)
    words = [*named, "No row was forgotten"]
    refused(model, lambda: model.forget(groups=groups), *words, error=KeyError)
    refused(model, lambda: remove(model, groups=groups), *words, error=KeyError)


def test_a_group_that_was_evicted_or_forgotten_is_unknown(kind: Kind) -> None:
    model = learn(kind(gamma=1.0, window=6, evict="oldest"), X, Y, groups=range(40))
    refused(model, lambda: model.forget(groups=[0]), "rows: 0", error=KeyError)
    model.forget(groups=[39])
    refused(model, lambda: model.forget(groups=[38, 39]), "rows: 39", error=KeyError)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "neither of ids and groups"),
        ({"ids": [1], "groups": ["customer-1"]}, "both of ids and groups"),
        ({"groups": [1.5]}, r"groups\[0\] is 1.5"),
        ({"groups": [None]}, r"groups\[0\] is None"),
        ({"groups": {"customer-1"}}, r"groups\[0\] is \{'customer-1'\}"),
        ({"groups": [["customer-1"]]}, r"shape \(1, 1\)"),
        ({"groups": [1, "customer-1"]}, "either strings or integers"),
        ({"groups": ["customer-1"], "gamma": "drop"}, "'recompute' or 'keep'"),
    ],
    ids=str,
)
def test_bad_arguments_to_forget(kind: Kind, given: dict[str, Any], expected: str) -> None:
    model = fit(kind(gamma=1.0), groups=GROUPS)
    refused(model, lambda: model.forget(**given), expected)
    refused(model, lambda: remove(model, **given), expected)


def test_no_groups_are_nothing_to_forget(kind: Kind) -> None:
    model = fit(kind(gamma=1.0), groups=GROUPS)
    digest = model_digest(model)
    assert model_digest(model.forget(groups=[])) == digest
    refused(model, lambda: remove(model, groups=[]), "groups is empty", "nothing to remove")
    refused(model, lambda: remove(model, ids=[]), "ids is empty", "nothing to remove")


@pytest.mark.parametrize(
    "other", [OnlineSVC, OnlineSVCCV, GapSVC, TrackingSVC, ExactRampSVC, KernelPerceptron]
)
def test_other_classifiers_refuse_groups(other: Callable[..., Any]) -> None:
    words = "does not store groups.*Pass groups=None, or use ExactSVC"
    with pytest.raises(ValueError, match=f"{other.__name__} {words}"):  # type: ignore[attr-defined]
        other(random_state=0).fit(X, Y, groups=GROUPS)
    model = other(random_state=0).fit(X, Y, groups=None)
    refused(model, lambda: model.partial_fit(X, Y, groups=GROUPS), words)
    with pytest.raises(TypeError, match=f"removed from a {type(model).__name__}; expected an Exac"):
        remove(model, ids=[1])
    if other is OnlineSVCCV:
        refused(model, lambda: model.fit(X, Y, groups=GROUPS), r"cv=list\(splitter.split\(X, y, gr")


def test_a_row_and_its_group_are_learned_together(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are learned in place would stay if a warning after them is an error."""
    model = fit(kind(gamma=1.0), groups=GROUPS)
    learned = []

    def failing(draft: Any) -> None:
        learned.append(draft._engine.native.size)
        raise UserWarning("of what happened in the call")

    monkeypatch.setattr(kind, "_report", failing)
    call = lambda: learn(model, X[:1], Y, groups=["late"])  # noqa: E731
    refused(model, call, "what happened", error=UserWarning)
    assert learned == [41]
    assert model.groups_.tolist() == GROUPS


def test_groups_may_be_read_while_rows_are_learned() -> None:
    model = ExactSVC(gamma=1.0, window=20).partial_fit(X, Y, classes=[0, 1], groups=NUMBERS)
    faults: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            groups = model.groups_.tolist()
            if len(groups) != 20 or not set(groups) <= {*range(8), None}:
                faults.append(str(groups))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(10):
        model.partial_fit(X, Y, groups=NUMBERS).learn_many(X[:9], Y[:9])
    done.set()
    reader.join()
    assert not faults, faults[0]


# -- files -----------------------------------------------------------------------------------------

LIES: dict[str, Callable[[Forged], Any]] = {
    "ids out of order": lambda forged: forged.change("_groups.ids", lambda a: a[::-1].copy()),
    "ids that repeat": lambda forged: forged.arrays["_groups.ids"].__setitem__(0, 1),
    "ids of floats": lambda forged: forged.change("_groups.ids", np.float64),
    "too few ids": lambda forged: forged.change("_groups.ids", lambda a: a[1:]),
    "ids in two dimensions": lambda forged: forged.change("_groups.ids", lambda a: a[:, None]),
    "names of floats": lambda forged: forged.state["_groups"]["dict"].update(
        names={"objects": [0.5] * 40}
    ),
    "names that are a number": lambda forged: forged.state["_groups"]["dict"].update(names=3),
    "no names": lambda forged: forged.state["_groups"]["dict"].pop("names"),
    "more": lambda forged: forged.state["_groups"]["dict"].update(more=1),
    "a list": lambda forged: forged.state.update(_groups=[1, 2]),
    "ends that do not fit": lambda forged: forged.change("_groups.names.ends", lambda a: a + 1),
}


@pytest.mark.parametrize("lie", LIES)
def test_files_with_impossible_groups_are_refused(kind: Kind, lie: str, tmp_path: Path) -> None:
    data = saved(fit(kind(gamma=1.0), groups=GROUPS), tmp_path)
    assert attempt(Forged(data).seal(), tmp_path) is not None
    forged = Forged(data)
    LIES[lie](forged)
    if "names" in lie:  # the members that are then of no use
        forged.arrays = {k: v for k, v in forged.arrays.items() if not k.startswith("_groups.n")}
    assert attempt(forged.seal(), tmp_path) is None


def test_groups_of_rows_that_a_file_does_not_store_are_dropped(tmp_path: Path) -> None:
    forged = Forged(saved(fit(ExactSVC(gamma=1.0), groups=GROUPS), tmp_path))
    forged.change("_groups.ids", lambda ids: ids + 10)
    model = attempt(forged.seal(), tmp_path)
    assert model.groups_.tolist() == [None] * 10 + GROUPS[:30]
    assert model._groups["ids"].max() == 39


# -- removals --------------------------------------------------------------------------------------


def test_models_without_a_digest() -> None:
    model = ExactSVC(kernel=lambda A, B: A @ B.T).fit(X, Y, groups=GROUPS)
    with pytest.raises(ValueError, match="its kernel is a Python function"):
        remove(model, groups=["customer-1"])
    assert len(model.ids_) == 40
    with pytest.raises(NotFittedError):
        remove(ExactSVC(), ids=[1])
    with pytest.raises(TypeError, match="salt is a bytes; expected a string"):
        remove(fit(ExactSVC()), ids=[1], salt=b"x")  # type: ignore[arg-type]


def test_an_empty_model_has_nothing_to_remove(tmp_path: Path) -> None:
    model = fit(ExactSVC(gamma=1.0), groups=GROUPS)
    save(model, tmp_path / "m.mwz")
    receipt = remove_from_file(tmp_path / "m.mwz", groups=sorted(set(GROUPS)))
    assert receipt.rows_left == 0
    emptied = load(tmp_path / "m.mwz")
    assert emptied.is_empty_
    for ask in (emptied.predict, emptied.decision_function):
        with pytest.raises(NotFittedError, match="ExactSVC is empty, because all rows were forg"):
            ask(X)
    with pytest.raises(KeyError, match="no stored row has a group"):
        remove(emptied, groups=["customer-1"])
    emptied.partial_fit(X, Y, groups=GROUPS)
    assert (emptied.predict(X) == fit(ExactSVC(gamma=1.0)).predict(X)).all()


def test_keeping_gamma_is_on_the_receipt() -> None:
    model = fit(ExactSVC(), groups=GROUPS)
    gamma = model.gamma_
    with pytest.warns(UserWarning, match="gamma stays"):
        receipt = remove(model, groups=["customer-1"], gamma="keep")
    assert receipt.gamma == "keep"
    assert receipt.dependents["gamma"] == {"before": gamma, "after": gamma}


def test_what_depends_on_rows_is_on_the_receipt() -> None:
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    model = ExactSVC(kernel="precomputed", calibration="sigmoid", window=30).fit(
        K, Y, groups=NUMBERS
    )
    receipt = remove(model, groups=[7])
    assert set(receipt.dependents) == {"kernel_values", "calibration", "window"}
    far = remove(fit(ExactSVC(gamma=1.0).set_params(record=True), groups=GROUPS), ids=[1])
    assert set(far.dependents) == {"path"}
    centred = ExactSVC().fit(X + 1e6, Y, groups=GROUPS)
    assert remove(centred, ids=[1]).dependents["centre"] == {"changed": True}


def test_a_pipeline_is_removed_from_as_far_as_it_can_be_saved() -> None:
    line = make_pipeline(StandardScaler(), ExactSVC(gamma=1.0))
    line.fit(X, Y, exactsvc__groups=GROUPS)
    try:
        model_digest(line)
    except ValueError:
        with pytest.raises(ValueError, match="Pipeline"):
            remove(line, groups=["customer-1"])
        assert len(line[-1].ids_) == 40
        return
    receipt = remove(line, groups=["customer-1"])
    assert receipt.estimator == "ExactSVC"
    assert receipt.dependents["steps"] == {"names": ["standardscaler"], "changed": False}
    assert verify_receipt(receipt, line)
    assert not verify_receipt(receipt, line[-1])
    with pytest.raises(TypeError, match="removed from a StandardScaler"):
        remove(make_pipeline(StandardScaler()).fit(X), ids=[1])


# -- solutions that are not unique -----------------------------------------------------------------

LOCAL: dict[str, Callable[[], Any]] = {
    "sigmoid": lambda: ExactSVC(kernel="sigmoid", coef0=-1.0).fit(X, Y, groups=GROUPS),
    "poly": lambda: ExactSVC(kernel="poly", coef0=-1.0).fit(X, Y, groups=GROUPS),
    "shifted": lambda: ExactSVC(kernel="poly", degree=1, gamma=1.0, coef0=-1.0, C=0.5).fit(
        X, Y, groups=GROUPS
    ),
    "precomputed": lambda: ExactSVC(kernel="precomputed", C=0.1).fit(
        X @ np.diag([1.0, -1.0]) @ X.T, Y, groups=GROUPS
    ),
    "one-class": lambda: ExactOneClassSVM(kernel="sigmoid").fit(X, groups=GROUPS),
    "pipeline": lambda: make_pipeline(StandardScaler(), ExactSVC(kernel="sigmoid")).fit(
        X, Y, exactsvc__groups=GROUPS
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", LOCAL)
def test_a_solution_that_may_not_be_unique_is_refused(kind: str, tmp_path: Path) -> None:
    model, path = LOCAL[kind](), tmp_path / "m.mwz"
    digest = model_digest(model)
    save(model, path)
    before = path.read_bytes()
    words = r"is not positive semi-definite here.*No row was removed\. Fit the model again"
    with pytest.raises(ValueError, match=words):
        remove(model, ids=[1, 2])
    with pytest.raises(ValueError, match=words):
        remove_from_file(path, groups=["customer-1"])
    assert model_digest(model) == digest
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    log = Path(f"{path}.removals.jsonl")
    receipt = remove_from_file(path, groups=["customer-1"], allow_local=True)
    assert receipt.unique is False
    assert json.loads(receipt.to_json())["unique"] is False
    assert verify_receipt(receipt, path)
    known, written = log.read_bytes(), path.read_bytes()
    with pytest.raises(ValueError, match="pass allow_local=True"):
        remove_from_file(path, groups=["customer-2"])
    assert (log.read_bytes(), path.read_bytes()) == (known, written)
    assert remove(model, ids=[1, 2], allow_local=True).unique is False
    estimator = model[-1] if kind == "pipeline" else model
    last = remove(model, ids=estimator.ids_)
    assert last.unique is True, "an empty model depends on no row"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"salt": ""}, "salt is empty"),
        ({"salt": 5}, "salt is a int"),
        ({"gamma": "drop"}, "gamma must be 'recompute' or 'keep', got 'drop'"),
        ({"allow_local": "yes"}, "allow_local must be True or False"),
    ],
)
def test_a_removal_with_wrong_arguments_creates_no_log(
    given: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.mwz"
    save(fit(ExactSVC(gamma=1.0)), path)
    with pytest.raises((TypeError, ValueError), match=words):
        remove_from_file(path, ids=[1], **given)
    assert list(tmp_path.iterdir()) == [path]


UNIQUE: dict[str, Callable[[], Any]] = {
    **{kernel: lambda k=kernel: fit(ExactSVC(kernel=k)) for kernel in ("linear", "rbf", "cosine")},
    "tanimoto": lambda: fit(ExactSVC(kernel="tanimoto")),
    "poly": lambda: fit(ExactSVC(kernel="poly", coef0=0.0)),
    "precomputed": lambda: ExactSVC(kernel="precomputed").fit(rbf_kernel(X), Y),
    "single": lambda: ExactSVC(kernel="precomputed").fit(rbf_kernel(X.astype(np.float32)), Y),
    "far": lambda: ExactSVC(kernel="precomputed", C=1e-3).fit((X + 1e5) @ (X + 1e5).T, Y),
    "conditional": lambda: ExactSVC(kernel="precomputed").fit(-euclidean_distances(X), Y),
    "sphere": lambda: ExactOneClassSVM().fit(X),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", UNIQUE)
def test_a_solution_that_is_unique_has_a_receipt(kind: str) -> None:
    receipt = remove(UNIQUE[kind](), ids=[1, 2], compare=True)
    assert receipt.unique is True
    assert Receipt.from_json(receipt.to_json()) == receipt


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_precomputed_values_of_removed_rows_do_not_matter() -> None:
    K = rbf_kernel(X)
    K[3, 4] = K[4, 3] = -5.0
    model = ExactSVC(kernel="precomputed", C=5.0).fit(K, Y)
    with pytest.raises(ValueError, match="kernel='precomputed' is not positive"):
        remove(model, ids=[5])
    with pytest.raises(ValueError, match="allow_local must be True or False"):
        remove(model, ids=[5], allow_local="yes")  # type: ignore[arg-type]
    receipt = remove(model, ids=[3], compare=True)
    assert receipt.unique is True
    assert receipt.comparison is not None
    assert receipt.comparison["decision_difference"] < 1e-6


def test_earlier_receipts_do_not_state_whether_the_solution_is_unique(tmp_path: Path) -> None:
    model = fit(ExactSVC(gamma=1.0))
    content = json.loads(remove(model, ids=[1]).to_json())
    del content["unique"]
    earlier = Receipt.from_json(json.dumps(content))
    assert earlier.unique is None
    assert verify_receipt(earlier, model)
    log = RemovalLog(tmp_path / "log.jsonl")
    log.append(earlier)
    line = json.loads(Path(log.path).read_text())
    del line["receipt"]["unique"], line["sha256"]
    line["sha256"] = hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()
    Path(log.path).write_text(json.dumps(line) + "\n")
    log.append(earlier)
    log.check()
    assert [receipt.unique for receipt in log] == [None, None]


BAD_FILES: dict[str, tuple[type[Exception], str]] = {
    "missing": (FileNotFoundError, "m.mwz"),
    "text": (ModelFileError, "cannot be loaded"),
    "online": (TypeError, "removed from a OnlineSVC"),
    "unknown": (KeyError, "'ann'"),
    "words": (ValueError, r"groups\[1\] is 'ann', but the groups of this model are integers"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files(case: str, tmp_path: Path) -> None:
    path = tmp_path / "m.mwz"
    if case == "text":
        path.write_text("not a model")
    elif case != "missing":
        model = OnlineSVC(random_state=0).fit(X, Y) if case == "online" else None
        save(model or fit(ExactSVC(), groups=NUMBERS), path)
    before = path.read_bytes() if case != "missing" else None
    error, words = BAD_FILES[case]
    groups = ["1", "ann"] if case == "words" else ["ann"]
    with pytest.raises(error, match=words):
        remove_from_file(path, groups=groups, as_text=case == "words")
    if case == "missing":
        assert list(tmp_path.iterdir()) == [], "no log for a file that does not exist"
    else:
        assert path.read_bytes() == before
        assert RemovalLog(f"{path}.removals.jsonl").entries() == []


BAD_RECEIPTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "missing": (lambda content: content.pop("violation"), "violation is missing"),
    "unknown": (lambda content: content.update(more=1), "more is unknown"),
    "format": (lambda content: content.update(format=2), "its format is 2"),
    "number": (lambda content: content.update(rows_left="3"), "rows_left is '3'"),
    "bool": (lambda content: content.update(rows_left=True), "rows_left is True"),
    "hashes": (lambda content: content.update(row_hashes=[1]), "row_hashes must be strings"),
    "text": (lambda content: content.update(time=None), "time is None"),
    "unique": (lambda content: content.update(unique=1), "unique is 1"),
}


@pytest.mark.parametrize("case", BAD_RECEIPTS)
def test_bad_receipts(case: str) -> None:
    receipt = remove(fit(ExactSVC(gamma=1.0)), ids=[1])
    content = json.loads(receipt.to_json())
    spoil, words = BAD_RECEIPTS[case]
    spoil(content)
    with pytest.raises(ValueError, match=f"not a receipt of format 1: {words}. Pass what"):
        Receipt.from_json(json.dumps(content))


def test_what_is_no_receipt_at_all(tmp_path: Path) -> None:
    receipt = remove(fit(ExactSVC(gamma=1.0)), ids=[1], salt="secret")
    for text in ("", "{", "[1]", "3"):
        with pytest.raises(ValueError, match="not a receipt"):
            Receipt.from_json(text)
    with pytest.raises(ValueError, match="Pass the same salt to covers"):
        receipt.covers(1)
    with pytest.raises(TypeError, match="expected a Receipt"):
        verify_receipt(receipt.to_json(), fit(ExactSVC()))
    with pytest.raises(TypeError, match="expected a Receipt"):
        RemovalLog(tmp_path / "log.jsonl").append(receipt.to_json())  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        RemovalLog(tmp_path / "no" / "log.jsonl").append(receipt)
    with pytest.raises(ValueError, match="cannot be saved"):
        verify_receipt(receipt, StandardScaler())
