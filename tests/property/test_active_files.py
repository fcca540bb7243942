"""No file, however made, does more than give back a learner or raise ModelFileError.

Damaged files are refused or give the same learner. Forged ones, with all checksums right, are
refused, or give a learner that asks and learns like any other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

import marginwise
from marginwise import ModelFileError, OnlineSVC
from marginwise._files.format import pack, unpack, write_file
from marginwise.active import (
    ActiveLearner,
    ErrorAudit,
    MarginExhausted,
    MaxLabels,
    StoppingRule,
    TargetRecall,
)
from tests.active_support import assert_same_learner, begun, pool

X, Y = pool(40)
RULE = MarginExhausted(margin=0.9) & (MaxLabels(30) | MaxLabels(40))


@pytest.fixture(scope="module")
def honest() -> ActiveLearner:
    learner = begun(X, Y, 12, strategy="near_boundary", stop=RULE)
    learner.skip(learner.ask())
    learner.ask()
    return learner


@pytest.fixture(scope="module")
def data(honest: ActiveLearner, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("honest") / "learner.mwz"
    honest.save(path)
    return path.read_bytes()


def tried(content: bytes, path: Path) -> ActiveLearner | str:
    path.write_bytes(content)
    try:
        return ActiveLearner.load(path, X)
    except ModelFileError as error:
        reason = str(error)
    assert reason.startswith(f"{path} cannot be loaded: ")
    return reason


# -- damage ---------------------------------------------------------------------------------------


def test_files_cut_short(data: bytes, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for length in [0, 1, 21, 22, len(data) - 1, *rng.integers(len(data), size=20)]:
        assert isinstance(tried(data[:length], tmp_path / "cut.mwz"), str)


def test_flipped_bits(data: bytes, honest: ActiveLearner, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for place in rng.integers(len(data), size=60):
        content = bytearray(data)
        content[place] ^= 1 << rng.integers(8)
        found = tried(bytes(content), tmp_path / "flipped.mwz")
        if not isinstance(found, str):
            assert_same_learner(honest, found, f"byte {place} was changed")


def test_a_missing_file_is_no_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ActiveLearner.load(tmp_path / "none.mwz", X)


# -- files of something else ----------------------------------------------------------------------


def test_models_are_no_learners_and_learners_no_models(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.mwz"
    marginwise.save(OnlineSVC().fit(X, Y), path)
    with pytest.raises(ModelFileError, match="it holds a 'OnlineSVC', not one of ActiveLearner"):
        ActiveLearner.load(path, X)
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="it holds a 'ActiveLearner', not one of"):
        marginwise.load(path)


@pytest.mark.parametrize("rows", [X[:-1], X[::-1], X + 1e-9, X[:, ::-1], np.tile(X[::-1], (2, 1))])
def test_another_pool_is_refused(data: bytes, rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "learner.mwz"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="it belongs to another pool"):
        ActiveLearner.load(path, np.ascontiguousarray(rows))


def test_a_pool_that_was_extended_is_the_same_pool(
    data: bytes, honest: ActiveLearner, tmp_path: Path
) -> None:
    """Rows may be added before a learner is saved, after it, and both."""
    path, more = tmp_path / "learner.mwz", np.concatenate([X, X + 0.1])
    path.write_bytes(data)
    longer = ActiveLearner.load(path, more)
    extended = copy.deepcopy(honest).extend(X + 0.1)
    assert_same_learner(extended, longer, "rows that were added after saving")
    extended.save(path)
    assert_same_learner(extended, ActiveLearner.load(path, more), "rows that were added before")
    with pytest.raises(ModelFileError, match="it belongs to another pool"):
        ActiveLearner.load(path, X)


def test_files_of_earlier_formats(honest: ActiveLearner, data: bytes, tmp_path: Path) -> None:
    """They know nothing of audits, corrections and extensions."""
    _, state = unpack(data, ["ActiveLearner"])
    state = copy.deepcopy(state)
    del state["sizes"], state["foreseen"], state["log"]["purposes"], state["asked"]["audited"]
    path = tmp_path / "learner.mwz"
    write_file(path, pack("ActiveLearner", state, 4))
    assert_same_learner(honest, ActiveLearner.load(path, X), "an earlier file")


def test_what_files_do_not_hold_is_to_be_given(tmp_path: Path) -> None:
    path = tmp_path / "learner.mwz"
    fitted = OnlineSVC().fit(X, Y)
    by_function = OnlineSVC(kernel=lambda A, B: A @ B.T)
    for estimator in (SGDClassifier(random_state=0), fitted, by_function):
        learner = begun(X, Y, 12, estimator=estimator)
        learner.save(path)
        with pytest.raises(ModelFileError, match="pass it as estimator"):
            ActiveLearner.load(path, X)
        loaded = ActiveLearner.load(path, X, estimator=estimator)
        assert_same_learner(learner, loaded, type(estimator).__name__)
    learner = begun(X, Y, 12, strategy=lambda f: f)
    learner.save(path)
    with pytest.raises(ModelFileError, match="pass it as strategy"):
        ActiveLearner.load(path, X)
    assert ActiveLearner.load(path, X, strategy=lambda f: f).ask() == learner.ask()


def test_bad_arguments_are_no_damage(data: bytes, tmp_path: Path) -> None:
    """Who passes something that is no classifier is not told that the file is damaged."""
    path = tmp_path / "learner.mwz"
    path.write_bytes(data)
    with pytest.raises((TypeError, ValueError), match="has no fit and no partial_fit") as caught:
        ActiveLearner.load(path, X, estimator=object())
    assert "damaged" not in str(caught.value)


def test_an_estimator_is_told_by_its_class_not_its_name(tmp_path: Path) -> None:
    """A subclass, or anything else that is called OnlineSVC, is not what load would make of it."""
    path = tmp_path / "learner.mwz"
    for base, options in ((OnlineSVC, {}), (SGDClassifier, {"random_state": 0})):
        namesake = type("OnlineSVC", (base,), {})
        begun(X, Y, 12, estimator=namesake(**options)).save(path)
        with pytest.raises(ModelFileError, match="pass it as estimator"):
            ActiveLearner.load(path, X)


def test_a_rule_of_ones_own_cannot_be_saved(tmp_path: Path) -> None:
    class Never(StoppingRule):
        def check(self, learner: Any) -> bool:
            return False

    learner = begun(X, Y, stop=MaxLabels(50) | Never())
    with pytest.raises(ValueError, match=r"stopping rule .* cannot be saved"):
        learner.save(tmp_path / "learner.mwz")
    assert not (tmp_path / "learner.mwz").exists()


# -- what comes back ------------------------------------------------------------------------------


def test_all_options_come_back(tmp_path: Path) -> None:
    learner = ActiveLearner(
        OnlineSVC(C=np.float32(3), class_weight={"a": 1.0, "ß": 2}, random_state=5),
        X,
        strategy="gradient",
        pool_size=7,
        stop=RULE,
        classes=["ß", "a"],
        y_pool=[None, "a"] * 20,
        random_state=np.random.RandomState(3),
        verbose=1,
    )
    learner.save(tmp_path / "fresh.mwz")
    loaded = ActiveLearner.load(tmp_path / "fresh.mwz", X)
    assert_same_learner(learner, loaded, "a learner without answers")
    assert loaded.estimator_.get_params() == learner.estimator_.get_params()
    assert loaded.stop == RULE
    for name in ("strategy", "pool_size", "verbose"):
        assert getattr(loaded, name) == getattr(learner, name)
    with pytest.raises(ValueError, match="not one of the classes"):
        loaded.teach(0, "b")


@pytest.mark.parametrize(
    ("stop", "again"),
    [
        ("auto", "auto"),
        ("audit", ErrorAudit()),
        (TargetRecall(0.9) | MaxLabels(9), TargetRecall(0.9) | MaxLabels(9)),
        (None, None),
    ],
    ids=repr,
)
def test_the_rule_of_a_search_comes_back(stop: Any, again: Any, tmp_path: Path) -> None:
    """Files written when "audit" was the default contain ErrorAudit, which they keep."""
    learner = begun(X, Y, 25, strategy="largest_positive", stop=stop)
    learner.save(tmp_path / "learner.mwz")
    loaded = ActiveLearner.load(tmp_path / "learner.mwz", X)
    assert loaded.stop == again
    assert loaded.should_stop() == learner.should_stop()
    assert loaded.ask() == learner.ask()


@pytest.mark.parametrize(
    "labels", [[True, False, True], [0, 1, 2], [0.5, 1.5, 1.0], ["", "ä", "a b"]]
)
def test_labels_come_back_as_they_were(labels: list[Any], tmp_path: Path) -> None:
    learner = ActiveLearner(OnlineSVC(), X, random_state=0)
    for row, label in enumerate(labels):
        learner.teach(row, label)
    learner.save(tmp_path / "learner.mwz")
    loaded = ActiveLearner.load(tmp_path / "learner.mwz", X)
    told = [[(type(s["label"]), s["label"]) for s in it.history_] for it in (learner, loaded)]
    assert told[0] == told[1]
    assert loaded.classes_.dtype == learner.classes_.dtype


def test_a_failed_save_keeps_the_old_file(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "learner.mwz"
    path.write_bytes(data)
    learner = begun(X, Y, 12)
    learner.stop = StoppingRule()
    with pytest.raises(ValueError, match="cannot be saved"):
        learner.save(path)
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


# -- forged files ---------------------------------------------------------------------------------


def changed(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(state: dict[str, Any]) -> None:
        for name in path[:-1]:
            state = state[name]
        state[path[-1]] = value(state[path[-1]]) if callable(value) else value

    return change


FORGED: dict[str, Callable[[dict[str, Any]], None]] = {
    "sums too few": changed("scores", "sums", value=np.zeros((5, 1))),
    "sums too wide": changed("scores", "sums", value=np.zeros((40, 2))),
    "sums flat": changed("scores", "sums", value=np.zeros(40)),
    "sums of words": changed("scores", "sums", value=np.array([["a"]] * 40)),
    "sums NaN": changed("scores", "sums", value=np.full((40, 1), np.nan)),
    "sums of another pool": changed("scores", "sums", value=lambda v: v + 1e6),
    "ids outside": changed("scores", "ids", value=lambda v: v + 1000),
    "ids negative": changed("scores", "ids", value=lambda v: v - 1000),
    "ids too few": changed("scores", "ids", value=lambda v: v[:-1]),
    "ids real": changed("scores", "ids", value=lambda v: v.astype(np.float64)),
    "ids equal": changed("scores", "ids", value=np.zeros_like),
    "alpha infinite": changed("scores", "alpha", value=lambda v: np.full_like(v, np.inf)),
    "alpha of three": changed("scores", "alpha", value=lambda v: np.tile(v, (3, 1))),
    "alpha empty": changed("scores", "alpha", value=np.zeros((0, 0))),
    "scores a number": changed("scores", value=3),
    "scores lack": changed("scores", value={"ids": np.arange(3)}),
    "seed negative": changed("seed", value=-1),
    "seed true": changed("seed", value=True),
    "seed huge": changed("seed", value=2**63 - 1),
    "pool_size": changed("pool_size", value=0),
    "verbose": changed("verbose", value="loud"),
    "strategy": changed("strategy", value="best"),
    "classes one": changed("classes", value=np.array([1])),
    "classes NaN": changed("classes", value=np.array([0.0, 1.0, np.nan])),
    "noted short": changed("noted", value=[1, 2]),
    "noted nested": changed("noted", value=[[1]] * 40),
    "rule unknown": changed("stop", value={"rule": "Never"}),
    "rule no dict": changed("stop", value=3),
    "rule bad": changed("stop", value={"rule": "MarginExhausted", "margin": -1.0}),
    "rule window": changed("stop", value={"rule": "SupportVectorPlateau", "window": 2.5}),
    "rule of nothing": changed("stop", value={"rule": "AnyOf", "rules": [None]}),
    "rule reason": changed("stop", value={"rule": "MaxLabels", "labels": 3, "reason": "so"}),
    "kinds unknown": changed("log", "kinds", value=lambda v: v + 7),
    "kinds signed": changed("log", "kinds", value=lambda v: np.full(len(v), -1, dtype=np.int8)),
    "counts huge": changed("log", "counts", value=lambda v: v + 10**15),
    "counts negative": changed("log", "counts", value=lambda v: -v),
    "rows outside": changed("log", "rows", value=lambda v: v + 35),
    "rows twice": changed("log", "rows", value=np.zeros_like),
    "rows real": changed("log", "rows", value=lambda v: v + 0.5),
    "labels none": changed("log", "labels", value=None),
    "labels NaN": changed("log", "labels", value=lambda v: np.full(len(v), np.nan)),
    "labels many": changed("log", "labels", value=lambda v: np.arange(len(v))),
    "labels one": changed("log", "labels", value=np.zeros_like),
    "asked short": changed("asked", "rows", value=lambda v: np.append(v, [1, 2, 3])),
    "asked outside": changed("asked", "rows", value=lambda v: v + 10**6),
    "asked words": changed("asked", "scores", value=np.array(["a"])),
    "seconds short": changed("seconds", value=np.zeros(1)),
    "seconds words": changed("seconds", value=lambda v: np.array(["a"] * len(v))),
    "C negative": changed("parameters", "C", value=-1.0),
    "degree huge": changed("parameters", "degree", value=2**40),
    "cache huge": changed("parameters", "cache_size", value=1e300),
    "kernel": changed("parameters", "kernel", value="precomputed"),
    "parameter unknown": changed("parameters", "depth", value=3),
    "parameters none": changed("parameters", value=None),
    "estimator unknown": changed("estimator", value="SVC"),
    "estimator a list": changed("estimator", value=["OnlineSVC"]),
    "pool": changed("pool", value=3),
    "sizes too many": changed("sizes", value=[40, 41]),
    "sizes none": changed("sizes", value=[0, 40]),
    "sizes falling": changed("sizes", value=[40, 30]),
    "sizes a word": changed("sizes", value="ab"),
    "correct early": changed("log", "kinds", value=lambda v: np.full_like(v, 3)),
    "withdraw all": changed("log", "kinds", value=lambda v: np.full_like(v, 4)),
    "purposes unknown": changed("log", "purposes", value=lambda v: v + 7),
    "purposes short": changed("log", "purposes", value=lambda v: v[:-1]),
    "audited words": changed("asked", "audited", value=np.array(["a"])),
    "foreseen short": changed("foreseen", value={"rows": np.arange(2), "labels": np.arange(1)}),
}


def forged(data: bytes, change: Callable[[dict[str, Any]], None], path: Path) -> bytes:
    _, state = unpack(data, ["ActiveLearner"])
    state = copy.deepcopy(state)
    change(state)
    write_file(path, pack("ActiveLearner", state))
    return path.read_bytes()


ENDLESS = {
    "reprocess": changed("parameters", "reprocess", value=2**62),
    "degree": changed("parameters", "degree", value=2**40),
    "cache_size": changed("parameters", "cache_size", value=1e300),
    "seed of 63 bits": changed("seed", value=2**63 - 1),
    "seed of 64 bits": changed("seed", value=2**63),
    "counts": changed("log", "counts", value=lambda v: v + 10**15),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_files_that_would_not_end_or_fail_later(data: bytes, case: str, tmp_path: Path) -> None:
    content = forged(data, ENDLESS[case], tmp_path / "forged.mwz")
    assert isinstance(tried(content, tmp_path / "tried.mwz"), str)


@pytest.mark.parametrize("case", FORGED)
def test_forged_files(data: bytes, case: str, tmp_path: Path) -> None:
    content = forged(data, FORGED[case], tmp_path / "forged.mwz")
    learner = tried(content, tmp_path / "tried.mwz")
    if isinstance(learner, str):
        return
    row = learner.ask()
    learner.teach(row, Y[row])
    assert set(learner.ask(4).tolist()) <= set(range(40))
    learner.should_stop()
    values = learner.estimator_.decision_function(X)
    np.testing.assert_allclose(learner.decision_values(), values, atol=1e-9)
