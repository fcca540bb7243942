"""Sifting: rough values are the values but for rounding, and what is passed over is far away."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from marginwise import (
    ExactRampSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
)
from marginwise._arrays import spread_rows
from marginwise._engine.engine import Engine
from marginwise._estimator.streams import SAMPLE
from marginwise._training import runs as _run
from marginwise._training import sift as _sift
from marginwise._training.loop import Sifted
from marginwise._training.sift import ENOUGH_INSIDE, LEEWAY, MOST_SAMPLED, Sieve, Tally
from tests.support import (
    Rows,
    assert_same_model,
    binary_values,
    blobs,
    core_state,
    differences,
    kernel_values,
    signs_of,
)

RULES = ["random", "gradient", "active", "autoactive"]
# A rule, and the problems of more than two classes; the rules that ignore labels have no pairs.
WAYS = [(rule, "ovr") for rule in RULES] + [("random", "ovo"), ("gradient", "ovo")]
OVR, OVO = ({"multiclass": multiclass} for multiclass in ("ovr", "ovo"))
SELECTING = [
    pytest.param(OnlineSVC, rule, {"multiclass": multiclass}, id=f"OnlineSVC-{rule}-{multiclass}")
    for rule, multiclass in WAYS
] + [pytest.param(GapSVC, rule, {}, id=f"GapSVC-{rule}") for rule in RULES]
UNTOUCHED = np.float32(77.0)


def learner(**params: Any) -> OnlineSVC:
    return OnlineSVC(**{"C": 3.0, "gamma": 0.5, "random_state": 0, "pool_size": 10, **params})


def asked_for(model: Any, X: Any, y: np.ndarray) -> tuple[Engine, Any, np.ndarray]:
    """The machine, rows as a labelled batch of it, and their signs."""
    labels = model._encode(y)
    ids = np.arange(10**6, 10**6 + len(y))
    batch = model._labelled(X, labels, model._costs[labels], ids)
    multiclass = getattr(model, "multiclass", "ovr")
    return model._engine, batch, signs_of(labels, len(model.classes_), multiclass)


def score_of(rule: str, f: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """What selection minimises; infinite for rows that have no part in a problem."""
    score = signs * f if rule in ("random", "gradient") else np.abs(f)
    return np.where(signs == 0, np.inf, score)


def steps_of(
    engine: Engine,
    batch: Any,
    order: np.ndarray,
    wanted: np.ndarray | None = None,
    seconds: float = 10.0,
) -> list[int]:
    """How many rows of an order each native call learned, in slices of so many seconds."""
    steps: list[int] = []
    while sum(steps) < len(order):
        rows = order[sum(steps) :]
        if wanted is None:
            steps.append(engine.native.learn(batch, rows, seconds))
        else:
            steps.append(engine.native.learn_wanted(batch, rows, wanted[sum(steps) :], seconds))
    return steps


# -- rough values ---------------------------------------------------------------------------------

KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"gamma": 0.3},
    "linear": {"C": 0.1},
    "poly": {"gamma": 0.2, "coef0": 1.0, "degree": 2, "C": 0.1},
    "cosine": {},
}


class Case:
    """A model, rows that it has not seen, and what NumPy makes of them."""

    def __init__(
        self, kernel: str, problems: tuple[int, str], sparse: bool, n_jobs: int = 1
    ) -> None:
        classes, multiclass = problems
        X, y = blobs(480, 1, classes, 5)
        if sparse:  # as many numbers, in other columns from row to row
            X = np.hstack([X, np.zeros((480, 120))])
            X[:, 5:] = np.where(np.random.default_rng(0).random((480, 120)) < 0.01, 1.0, 0.0)
        self.X = sp.csr_array(X[180:]) if sparse else X[180:]
        first = sp.csr_array(X[:180]) if sparse else X[:180]
        params = {"multiclass": multiclass, "kernel": kernel, "n_jobs": n_jobs, **KERNELS[kernel]}
        self.model = learner(**params).fit(first, y[:180])
        assert self.model._engine.plan.sparse == sparse
        self.machine, self.batch, _ = asked_for(self.model, self.X, y[180:])
        self.all = np.arange(300)
        names = ("gamma", "coef0", "degree")
        self.terms = {name: self.machine.plan.__dict__[name] for name in names}
        self.kernel = kernel
        weights = self.model.dual_coef_
        values = self.values(self.X, self.model.support_vectors_)
        self.expected = values @ weights.T + self.model.intercept_
        # what single precision may be off by
        self.off = 4e-6 * (np.abs(values) @ np.abs(weights.T) + 1.0)

    def values(self, A: Any, B: Any) -> np.ndarray:
        return kernel_values(self.kernel, A, B, **self.terms)

    def rough(self, rows: np.ndarray | None = None) -> np.ndarray:
        return self.machine.native.rough_decision(self.batch, self.all if rows is None else rows)


@pytest.fixture(scope="module")
def cases() -> dict[tuple[Any, ...], Case]:
    return {}


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def sparse(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(
    params=[(2, "ovr"), (3, "ovr"), (18, "ovr"), (3, "ovo"), (7, "ovo")],
    ids=["2 classes", "3 classes", "18 classes", "3 pairs", "21 pairs"],
)
def problems(request: pytest.FixtureRequest) -> tuple[int, str]:
    """18 problems are more than one group of coefficients."""
    return request.param


@pytest.fixture(params=KERNELS)
def case(
    request: pytest.FixtureRequest, sparse: bool, problems: tuple[int, str], cases: Any
) -> Case:
    key = (request.param, problems, sparse)
    if key not in cases:
        cases[key] = Case(*key)
    return cases[key]


@pytest.mark.slow
def test_rough_decisions_are_the_decisions(case: Case) -> None:
    rough = case.rough()
    assert rough.dtype == np.float32
    assert rough.shape == case.expected.shape
    assert (np.abs(rough - case.expected) <= case.off).all(), "not what NumPy has"
    exact = binary_values(case.model, case.X)
    assert (np.abs(rough - exact) <= case.off).all(), "not what decision_function has"


def test_rough_decisions_of_some_rows(case: Case) -> None:
    """In any order, and more than once: a row's value does not depend on the others."""
    rows = np.random.default_rng(0).integers(300, size=400)
    assert np.array_equal(case.rough(rows), case.rough()[rows])
    assert case.rough(rows[:0]).shape == (0, case.expected.shape[1])


def test_rough_decisions_where_they_are_asked_for(case: Case) -> None:
    """Values that nobody asked for stay as they are."""
    rng = np.random.default_rng(1)
    asked = (rng.random(case.expected.shape) < 0.3).astype(np.uint8)
    asked[:, 0] = 0 if asked.shape[1] > 1 else asked[:, 0]
    out = np.full(case.expected.shape, UNTOUCHED)
    case.machine.native.rough_decision_where(case.batch, asked, out)
    assert (out[asked == 0] == UNTOUCHED).all()
    there = asked == 1
    assert (np.abs(out - case.expected)[there] <= case.off[there]).all()


def test_rough_expansions_over_other_centres(case: Case) -> None:
    """Centres in place of members, with coefficients and biases of their own."""
    rng = np.random.default_rng(2)
    problems = case.expected.shape[1]
    centres = case.X[rng.choice(300, 70, replace=False)]
    laid = case.machine.native.pack_rows(case.machine.batch(centres))
    coefficients, bias = rng.normal(size=(problems, 70)), rng.normal(size=problems)
    values = case.values(case.X, centres)
    rough = case.machine.native.rough_expansion(laid, coefficients, bias, case.batch, case.all)
    off = 4e-6 * (np.abs(values) @ np.abs(coefficients.T) + 1.0)
    assert (np.abs(rough - (values @ coefficients.T + bias)) <= off).all()


def test_cross_values_are_kernel_values(case: Case) -> None:
    centres = case.X[np.arange(0, 300, 4)]  # 75: more than a tile
    laid = case.machine.native.pack_rows(case.machine.batch(centres))
    rows = np.random.default_rng(3).permutation(300)
    found = case.machine.native.cross_values(laid, case.batch, rows)
    expected = case.values(case.X[rows], centres)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rough_values_do_not_depend_on_threads(
    kernel: str, problems: tuple[int, str], sparse: bool
) -> None:
    """Bit for bit: they decide what is learned."""
    one, many = (Case(kernel, problems, sparse, n_jobs) for n_jobs in (1, 3))
    centres = one.X[:90]
    asked = (np.random.default_rng(0).random(one.expected.shape) < 0.5).astype(np.uint8)
    coefficients = np.random.default_rng(1).normal(size=(one.expected.shape[1], 90))
    results = []
    for case in (one, many):
        machine, laid = case.machine, case.machine.native.pack_rows(case.machine.batch(centres))
        where = np.zeros(case.expected.shape, dtype=np.float32)
        machine.native.rough_decision_where(case.batch, asked, where)
        bias = np.zeros(len(coefficients))
        expansion = machine.native.rough_expansion(laid, coefficients, bias, case.batch, case.all)
        cross = machine.native.cross_values(laid, case.batch, case.all)
        results.append([case.rough(), where, expansion, cross])
    for name, a, b in zip(["rough", "where", "expansion", "cross"], *results, strict=True):
        assert np.array_equal(a, b), name


def test_rough_decisions_of_an_average() -> None:
    """TrackingSVC decides by averages, which are not the coefficients that it moves."""
    X, y = blobs(300, 0, 3, 4)
    model = TrackingSVC(gamma=0.3, steps=3, random_state=0).fit(X[:200], y[:200])
    machine, batch, _ = asked_for(model, X, y)
    rough = machine.native.rough_decision(batch, np.arange(300))
    exact = model.decision_function(X)
    np.testing.assert_allclose(rough, exact, atol=1e-5 * np.abs(exact).max())
    out = np.zeros_like(rough)
    machine.native.rough_decision_where(batch, np.ones(rough.shape, dtype=np.uint8), out)
    np.testing.assert_allclose(out, exact, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("rows", [[-1], [300], [0, 10**12]])
def test_rows_outside_the_batch_are_refused(rows: list[int]) -> None:
    case = Case("rbf", (2, "ovr"), False)
    laid = case.machine.native.pack_rows(case.machine.batch(case.X[:3]))
    with pytest.raises(ValueError, match="outside the batch"):
        case.rough(np.array(rows))
    with pytest.raises(ValueError, match="outside the batch"):
        case.machine.native.cross_values(laid, case.batch, np.array(rows))
    with pytest.raises(ValueError, match="outside the batch"):
        case.machine.native.rough_expansion(
            laid, np.zeros((1, 3)), np.zeros(1), case.batch, np.array(rows)
        )


def test_flags_and_coefficients_of_another_size_are_refused() -> None:
    case = Case("rbf", (3, "ovo"), False)
    laid = case.machine.native.pack_rows(case.machine.batch(case.X[:3]))
    out = np.zeros((300, 3), dtype=np.float32)
    for shape in ((300, 2), (299, 3), (301, 3)):
        with pytest.raises(ValueError, match="rows x problems"):
            case.machine.native.rough_decision_where(
                case.batch, np.ones(shape, dtype=np.uint8), out
            )
        flags = np.ones(shape, dtype=np.uint8)
        with pytest.raises(ValueError, match="rows x problems"):
            case.machine.native.learn_wanted(case.batch, np.arange(300), flags, 1.0)
    for coefficients, bias in ((np.zeros((3, 4)), np.zeros(3)), (np.zeros((3, 3)), np.zeros(2))):
        with pytest.raises(ValueError, match="problems x centres"):
            case.machine.native.rough_expansion(laid, coefficients, bias, case.batch, case.all)


# -- learning what is wanted ----------------------------------------------------------------------


def begun(kind: Any, classes: int, sparse: bool, **params: Any) -> tuple[Any, Any, np.ndarray]:
    """A model of 300 rows, and 700 rows to come: several blocks."""
    X, y = blobs(1000, 2, classes, 6)
    if sparse:
        X = np.hstack([X, np.zeros((1000, 100))])
    rows = sp.csr_array(X) if sparse else X
    model = kind(C=3.0, gamma=0.3, random_state=0, **params).partial_fit(
        rows[:300], y[:300], classes=np.unique(y)
    )
    return model, rows[300:], y[300:]


ONLINE = [
    pytest.param(OnlineSVC, OVR, id="OnlineSVC-ovr"),
    pytest.param(OnlineSVC, OVO, id="OnlineSVC-ovo"),
]
OTHERS = [(kind, {}) for kind in (GapSVC, TrackingSVC, ExactRampSVC, KernelPerceptron)]


def arrays(machine: Engine) -> dict[str, Any]:
    """All but what was measured and counted."""
    aside = ("seconds", "counters", "plan")
    return {name: value for name, value in machine.state().items() if name not in aside}


def of_problem(machine: Engine, c: int) -> dict[int, tuple[float, float]]:
    """alpha and g of the members that a problem holds, by id."""
    state = machine.state()
    held = state["rank"][c] >= 0
    pairs = zip(state["alpha"][c][held].tolist(), state["g"][c][held].tolist(), strict=True)
    return dict(zip(state["ids"][held].tolist(), pairs, strict=True))


@pytest.mark.parametrize(("kind", "params"), [*ONLINE, *OTHERS[:2]])
@pytest.mark.parametrize("classes", [2, 3])
def test_what_all_want_is_learned_as_ever(
    kind: Any, params: dict[str, Any], classes: int, sparse: bool
) -> None:
    """In one go and in many: flags that lag behind their rows would show."""
    model, X, y = begun(kind, classes, sparse, **params)
    machine, batch, signs = asked_for(model, X, y)
    order = np.random.default_rng(0).permutation(700)
    plain = machine.clone()
    assert sum(steps_of(plain, batch, order)) == 700
    for seconds in (10.0, 0.0):
        wanted = machine.clone()
        every = np.ones(signs.shape, dtype=np.uint8)
        steps = steps_of(wanted, batch, order, every, seconds)
        assert sum(steps) == 700
        assert (len(steps) > 1) == (seconds == 0)
        assert not differences(arrays(plain), arrays(wanted))
        wanted.native.check(1e-4)


@pytest.mark.parametrize(("kind", "params"), [*ONLINE, *OTHERS])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_a_problem_learns_the_rows_that_it_wants(
    kind: Any, params: dict[str, Any], share: float, sparse: bool
) -> None:
    """Bit for bit what a model of two classes becomes that is given these rows and no others.

    Of a pair, that is rows of its two classes: it passes over the others, wanted or not.
    """
    _, X, y = begun(kind, 3, sparse, **params)
    rows = np.flatnonzero(np.random.default_rng(0).random(700) < share)
    several, two = (kind(C=3.0, gamma=0.3, random_state=0, **params) for _ in range(2))
    several._start(X, [0, 1, 2])
    two._start(X, [False, True])
    machine, batch, signs = asked_for(several, X, y)
    wanted = np.zeros(signs.shape, dtype=np.uint8)
    wanted[rows, 1] = 1
    steps_of(machine, batch, np.arange(700), wanted, seconds=0.0)
    machine.native.check(1e-4)
    plain, batch, _ = asked_for(two, X, signs[:, 1] > 0)
    steps_of(plain, batch, rows[signs[rows, 1] != 0], seconds=0.0)
    assert of_problem(machine, 1) == of_problem(plain, 0)
    assert len(of_problem(machine, 1)) > 20
    assert not of_problem(machine, 0)
    assert not of_problem(machine, 2)


@pytest.mark.parametrize(("kind", "params"), [*ONLINE, *OTHERS])
def test_problems_that_want_nothing_stay_as_they_were(
    kind: Any, params: dict[str, Any], sparse: bool
) -> None:
    model, X, y = begun(kind, 3, sparse, **params)
    machine, batch, signs = asked_for(model, X, y)
    wanted = np.zeros(signs.shape, dtype=np.uint8)
    wanted[:, 1] = 1
    before = [of_problem(machine, c) for c in range(3)]
    steps_of(machine, batch, np.arange(700), wanted, seconds=0.0)
    machine.native.check(1e-4)
    after = [of_problem(machine, c) for c in range(3)]
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert after[2] == before[2]


# -- pools and picks ------------------------------------------------------------------------------


def picks_by_the_rules(rule: str, size: int, score: np.ndarray, margin: float) -> list[int]:
    """What selection.hpp would learn of a chunk: example by example, pool by pool.

    What sifting leaves out besides are pools whose best is beyond the margin and its leeway.
    """
    chosen, best, sampled, inside = [], None, 0, 0

    def complete() -> bool:
        if rule == "autoactive":
            return inside >= ENOUGH_INSIDE or sampled >= MOST_SAMPLED
        return sampled >= size

    for row, value in enumerate(score):
        if best is None or value < score[best]:
            best = row
        inside += bool(value < margin)
        sampled += 1
        if complete() or row == len(score) - 1:
            if score[best] < margin + LEEWAY:
                chosen.append(best)
            best, sampled, inside = None, 0, 0
    return chosen


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.99, 1.0, 1.05, 1.5, 3.0, np.inf]), max_size=60),
    st.integers(1, 40),
    st.sampled_from(["gradient", "active", "autoactive"]),
    st.integers(1, 60),
    st.sampled_from([0.6, 1.0, 2.0]),
)
def test_picks_follow_the_rules_of_selection(
    pattern: list[float], repeat: int, rule: str, size: int, margin: float
) -> None:
    """The first of equals, five inside, a hundred at most, and pools that end with the chunk."""
    score = np.tile(np.array(pattern, dtype=np.float32), repeat)[:1000]
    sieve = Sieve(rule, size, 0.0, 0)
    found = sieve.picks(score, margin)
    assert found.tolist() == picks_by_the_rules(rule, size, score, margin)
    pools = sieve._pools(score, margin)
    assert [first for first, _ in pools] == [0, *(end for _, end in pools)][: len(pools)]
    assert (pools[-1][1] if pools else 0) == len(score)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.2, 0.7]))
def test_autoactive_pools_of_random_scores(seed: int, inside: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 700))
    near = rng.random(n) < inside
    score = np.where(near, rng.random(n), 1 + 2 * rng.random(n)).astype(np.float32)
    sieve = Sieve("autoactive", 50, 0.0, 0)
    assert sieve.picks(score, 1.0).tolist() == picks_by_the_rules("autoactive", 50, score, 1.0)
    for first, end in sieve._pools(score, 1.0)[:-1]:
        assert near[first:end].sum() == ENOUGH_INSIDE or end - first == MOST_SAMPLED


@given(st.lists(st.sampled_from([-2.0, 0.0, 1.0, 1.0999, 1.1001, 5.0, np.inf]), max_size=50))
def test_at_random_all_rows_near_the_margin_are_picked(values: list[float]) -> None:
    score = np.array(values, dtype=np.float32)
    expected = [row for row, value in enumerate(values) if value < 1.1]
    assert Sieve("random", 50, 0.0, 0).picks(score, 1.0).tolist() == expected


@pytest.mark.parametrize(("kind", "rule", "params"), SELECTING)
def test_a_chunk_is_chosen_by_the_decision_function(
    kind: Any, rule: str, params: dict[str, Any], sparse: bool
) -> None:
    model, X, y = begun(kind, 3, sparse, **params)
    machine, batch, signs = asked_for(model, X, y)
    sieve = Sieve(rule, 10, 0.0, 0)
    wanted = sieve.choose(machine, batch, signs)
    margin = 1.0 + _sift.widths(machine) / 2
    score = score_of(rule, binary_values(model, X), signs)
    close = np.abs(score[:, :, None] - [1.0, 1.0 + LEEWAY]).min() < 1e-6
    assert not close, "rounding would decide: other data, please"
    for c in range(3):
        if rule == "random":
            expected = np.flatnonzero(score[:, c] < margin[c] + LEEWAY).tolist()
        else:
            expected = picks_by_the_rules(rule, 10, score[:, c], margin[c])
        assert np.flatnonzero(wanted[:, c]).tolist() == expected
        assert 0 < len(expected) < 700
    assert sieve.tally == Tally(
        rows=700,
        pairs=2100,
        asked=2100,
        inside=int((score < margin).sum()),
        wanted=int(wanted.sum()),
    )


@pytest.mark.parametrize(("rule", "multiclass"), WAYS)
def test_a_problem_that_cannot_judge_learns_all(rule: str, multiclass: str) -> None:
    """Class 2 has no example yet, so that its problems have no pair to judge by."""
    X, y = blobs(200, 0, 3)
    seen = np.flatnonzero(y < 2)[:40]
    model = learner(multiclass=multiclass).partial_fit(X[seen], y[seen], classes=[0, 1, 2])
    machine, batch, signs = asked_for(model, X, y)
    wanted = Sieve(rule, 10, 0.0, 0).choose(machine, batch, signs)
    waits = np.array([False, False, True] if multiclass == "ovr" else [False, True, True])
    assert wanted[:, waits][signs[:, waits] != 0].all()
    assert not (wanted | (signs == 0))[:, ~waits].all(axis=0).any()
    assert not wanted[:, ~waits][signs[:, ~waits] == 0].any()


# -- whole runs -----------------------------------------------------------------------------------


def set_sizes(monkeypatch: pytest.MonkeyPatch, chunk: int, **more: Any) -> None:
    """Small chunks, and sketches for small models."""
    monkeypatch.setattr(_run, "CHUNK", chunk)
    sizes = {"CHUNK": chunk, "WORTH_A_SKETCH": 30, "MEMBERS_A_CENTRE": 2, **more}
    for name, value in sizes.items():
        monkeypatch.setattr(_sift, name, value)


@pytest.mark.parametrize("kind", [OnlineSVC, GapSVC])
def test_a_first_chunk_at_random_is_learned_whole(kind: Any) -> None:
    """With one chunk there is nobody to judge by, and sifting changes nothing."""
    X, y = blobs(400, 0, 3)
    models = [
        kind(gamma=0.5, random_state=0).learn_from(Rows(X, y), sift=sift, callback=lambda *_: None)
        for sift in (None, 0, 0.1)
    ]
    for other in models[1:]:
        assert_same_model(models[0], other, "a first chunk was sifted")


@pytest.mark.parametrize(("rule", "multiclass"), WAYS)
@pytest.mark.parametrize("classes", [2, 3])
def test_asking_the_whole_model_learns_almost_the_same(
    rule: str, multiclass: str, classes: int, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """sift=0 leaves out only what is far, so that the error hardly changes."""
    set_sizes(monkeypatch, 200)
    X, y = blobs(3000, seed, classes, 4)
    errors = {}
    for sift in (None, 0):
        model = learner(selection=rule, multiclass=multiclass).learn_from(
            Rows(X[:2000], y[:2000]), sift=sift, callback=lambda *_: None
        )
        model._engine.native.check(1e-4)
        errors[sift] = 1 - model.score(X[2000:], y[2000:])
    assert errors[0] < errors[None] + 0.02


@pytest.mark.slow
@pytest.mark.parametrize("sift", [0, 0.05])
@pytest.mark.parametrize(("kind", "rule", "how"), SELECTING)
def test_one_model_for_any_threads_and_cache(
    kind: Any, rule: str, how: dict[str, Any], sift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several sketches: rough values that differ in a bit would choose other rows."""
    set_sizes(monkeypatch, 256, STALE=1.5)
    X, y = blobs(1500, 0, 3, 4)
    tallies: list[Tally] = []

    def run(**params: Any) -> Any:
        params = {"gamma": 0.3, "C": 5.0, "random_state": 0, "pool_size": 5, **how, **params}
        model = kind(selection=rule, **params)
        return model.learn_from(
            Rows(X, y), sift=sift, callback=lambda _, moment: tallies.append(moment.tally)
        )

    model = run()
    if sift:
        assert tallies[-1].sketches > 0
        assert tallies[-1].asked < tallies[-1].pairs, "no sketch has judged a row"
    for params in ({"n_jobs": 3}, {"cache_size": 1e-3, "n_jobs": 2}):
        assert_same_model(model, run(**params), f"{params}")
        assert tallies[-1] == tallies[5]


@pytest.mark.parametrize("sift", [0, 0.05])
@pytest.mark.parametrize(("rule", "multiclass"), WAYS)
def test_the_counts_add_up(
    rule: str, multiclass: str, sift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_sizes(monkeypatch, 256, STALE=1.5, AUDITED=4)
    learned: list[int] = []
    choose = Sifted.choose

    def counting(self: Sifted, engine: Engine, batch: Any, rows: Any) -> Any:
        order = choose(self, engine, batch, rows)
        assert len(self._wanted) == len(order)
        assert self._wanted.any(axis=1).all(), "a row that no problem wants was prepared"
        learned.append(int(self._wanted.sum()))
        return order

    monkeypatch.setattr(Sifted, "choose", counting)
    tallies: list[Tally] = []
    X, y = blobs(2000, 0, 3, 4)
    learner(selection=rule, multiclass=multiclass).learn_from(
        Rows(X, y), sift=sift, callback=lambda _, moment: tallies.append(moment.tally)
    )
    assert [tally.rows for tally in tallies] == [*range(256, 2000, 256), 2000]
    assert tallies[-1].wanted == sum(learned)
    before = Tally()
    for tally, count in zip(tallies, learned, strict=True):
        assert tally.pairs == 3 * tally.rows
        assert tally.asked + tally.audited <= tally.pairs
        assert tally.inside <= tally.asked
        assert tally.wanted <= tally.asked
        assert tally.wrong <= tally.audited
        assert tally.wanted - before.wanted == count
        assert all(getattr(tally, name) >= value for name, value in vars(before).items())
        assert 0 <= tally.lost < 1
        before = tally
    assert (
        (before.sketches > 0) == (before.audited > 0) == (before.asked < before.pairs) == (sift > 0)
    )


# -- the sketch -----------------------------------------------------------------------------------


@functools.cache
def settled(multiclass: str) -> tuple[OnlineSVC, np.ndarray, np.ndarray]:
    """A model of the first 4,000 rows, and all."""
    X, y = blobs(12_000, 3, 3, 4)
    model = learner(gamma=0.3, C=5.0, reprocess=2, multiclass=multiclass)
    return model.fit(X[:4000], y[:4000]), X, y


class Sketched:
    """A model, a sieve with a sketch of it, and a chunk that the sketch judges."""

    def __init__(self, way: tuple[str, str], loss: float) -> None:
        rule, multiclass = way
        self.model, X, y = settled(multiclass)
        machine, batch, signs = asked_for(self.model, X[4000:8000], y[4000:8000])
        self.sieve = Sieve(rule, 5, loss, 0)
        self.sieve.choose(machine, batch, signs)
        assert self.sieve.tally.sketches == 1
        self.drawn = self.sieve.tally
        self.sieve.tally = Tally(rows=4000)
        f = binary_values(self.model, X[8000:])
        self.machine, self.batch, self.signs = asked_for(self.model, X[8000:], y[8000:])
        self.margin = 1.0 + _sift.widths(machine) / 2
        self.scores = score_of(rule, f, self.signs)
        self.inside = self.scores < self.margin

    def judge(self) -> np.ndarray:
        return self.sieve._scores(self.machine, self.batch, self.signs)


@pytest.fixture(params=[("random", "ovr"), ("active", "ovr"), ("random", "ovo")], ids="-".join)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.mark.parametrize("loss", [0.01, 0.1])
def test_a_sketch_finds_nearly_all_inside(
    way: tuple[str, str], loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fewer rows lie inside a pair's margin: hold out more to know a quantile of them.
    set_sizes(monkeypatch, 4000, AUDITED=1, HELD_OUT=4 if way[1] == "ovo" else 8)
    sketched = Sketched(way, loss)
    scores, tally = sketched.judge(), sketched.sieve.tally
    found = np.isfinite(scores)
    np.testing.assert_allclose(scores[found], sketched.scores[found], atol=1e-4)
    hidden = sketched.inside & ~found
    share = hidden.sum() / sketched.inside.sum()
    assert share < 2 * loss + 0.01, f"{share:.3f} of the rows inside are hidden"
    assert not found[sketched.signs == 0].any()
    assert found[sketched.signs != 0].mean() < 0.9, "and it must be of use"
    # All that it calls far was looked at besides, so that what is lost is known.
    assert tally.audited == (~found).sum()
    assert tally.wrong == hidden.sum()
    assert tally.asked == found.sum()


@pytest.mark.parametrize("audited", [1, 2, 8])
def test_what_is_lost_is_estimated_well(
    way: tuple[str, str], audited: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the truth, by brute force; with all rows looked at it is the truth."""
    set_sizes(monkeypatch, 4000, AUDITED=audited)
    sketched = Sketched(way, 0.2)
    wanted = sketched.sieve.choose(sketched.machine, sketched.batch, sketched.signs)
    tally = sketched.sieve.tally
    monkeypatch.setattr(_sift, "AUDITED", 10**9)
    again = Sieve(way[0], 5, 0.2, 0, Tally(rows=4000), sketched.sieve.sketch)
    found = np.isfinite(again._scores(sketched.machine, sketched.batch, sketched.signs))
    hidden = int((sketched.inside & ~found).sum())
    truth = hidden / sketched.inside.sum()
    assert hidden > 100, "nothing is lost: no test"
    if audited == 1:
        assert tally.lost == pytest.approx(truth)
    # hidden rows met by looking are binomial: four deviations of their number
    deviation = np.sqrt(hidden / audited * (1 - 1 / audited)) / (hidden / audited)
    assert abs(tally.lost - truth) <= 4 * deviation * truth + 1e-9
    assert tally.audited == pytest.approx((~found).sum() / audited, rel=0.2)
    assert not (wanted[~found] == 1).any()


def test_looking_does_not_change_what_is_learned(
    way: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_sizes(monkeypatch, 4000)
    sketched = Sketched(way, 0.2)
    chosen = []
    for audited in (1, 3, 10**9):
        monkeypatch.setattr(_sift, "AUDITED", audited)
        sieve = Sieve(way[0], 5, 0.2, 0, Tally(rows=4000), sketched.sieve.sketch)
        chosen.append(sieve.choose(sketched.machine, sketched.batch, sketched.signs))
        assert (sieve.tally.audited > 0) == (audited < 10**9)
    assert np.array_equal(chosen[0], chosen[1])
    assert np.array_equal(chosen[0], chosen[2])


def test_a_sketch_is_made_anew_when_the_model_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    set_sizes(monkeypatch, 4000)
    sketched = Sketched(("random", "ovr"), 0.1)
    machine, sieve = sketched.machine, sketched.sieve
    sieve.choose(machine, sketched.batch, sketched.signs)
    assert sieve.tally.sketches == 0, "made anew though nothing was learned"
    assert sieve.sketch is not None
    few = int(_sift.STALE * machine.native.size) - 1
    for more, stale in ((few, False), (few + 3, True)):
        inserted = machine.counters["inserted"] - more
        sieve.sketch.inserted = inserted
        before = sieve.tally.sketches
        sieve.choose(machine, sketched.batch, sketched.signs)
        assert (sieve.tally.sketches > before) == stale, f"{more} of {machine.native.size} are new"


def test_a_model_is_sketched_once_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for models that are quicker asked themselves, not without an accepted loss."""
    model, X, y = begun(OnlineSVC, 3, False, **OVR)
    machine, batch, signs = asked_for(model, X, y)
    for worth, loss, chunk, made in (
        (machine.native.size, 0.1, 700, 1),
        (machine.native.size + 1, 0.1, 700, 0),
        (machine.native.size, 0.0, 700, 0),
        (machine.native.size, 0.1, 1402, 0),  # too few rows to fit it to
    ):
        set_sizes(monkeypatch, chunk, WORTH_A_SKETCH=worth)
        sieve = Sieve("random", 10, loss, 0)
        sieve.choose(machine, batch, signs)
        assert sieve.tally.sketches == made
        assert sieve.tally.asked == sieve.tally.pairs == 2100


def test_a_sketch_outlives_the_change_to_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that single precision cannot place comes after a sketch was drawn."""
    set_sizes(monkeypatch, 256, STALE=1e9)
    X, y = blobs(2600, 0, 3, 4)
    unseen = np.setdiff1d(np.arange(1500, 2000), spread_rows(2600, SAMPLE))  # it sets no centre
    X[unseen[0]] = [1e10, 0, 0, 0]
    seen: list[tuple[str, int]] = []
    model = learner(gamma=0.1, C=10.0, shuffle=False).learn_from(
        Rows(X, y),
        sift=0.1,
        callback=lambda model, moment: seen.append(
            (model.stats_["precision"], moment.tally.sketches)
        ),
    )
    assert ("single", 1) in seen
    assert seen[-1] == ("double", 1)
    model._engine.native.check(1e-4)


def test_a_sparse_model_is_not_sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    set_sizes(monkeypatch, 128)
    X, y = blobs(600, 0, 3, 4)
    rows = sp.csr_array(np.hstack([X, np.zeros((600, 100))]))
    tallies: list[Tally] = []
    model = learner().learn_from(
        Rows(rows, y), sift=0.1, callback=lambda _, moment: tallies.append(moment.tally)
    )
    assert core_state(model)["plan"]["sparse"]
    assert tallies[-1].sketches == 0
    assert tallies[-1].asked == tallies[-1].pairs
    dense = learner().learn_from(Rows(rows.toarray(), y), sift=0)
    assert abs(model.score(rows, y) - dense.score(rows.toarray(), y)) < 0.02
