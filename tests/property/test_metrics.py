"""What must hold of the measures for any labels and any scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginwise.metrics import g_mean_score, prbep_score

Pairs = list[tuple[int, int]]
Rows = list[tuple[bool, float]]

# The few numbers make ties likely, with infinities among them; the others make any float.
SCORES = st.one_of(
    st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, np.inf]), st.floats(allow_nan=False)
)
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)
ROWS = st.lists(st.tuples(st.booleans(), SCORES), min_size=1, max_size=40).filter(
    lambda rows: any(positive for positive, _ in rows)
)
RANKS = st.lists(st.tuples(st.booleans(), st.integers(-20, 20)), min_size=1, max_size=40).filter(
    lambda rows: any(positive for positive, _ in rows)
)
# Each keeps any two integers of -20 to 20 apart, and in order.
RISING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "shift": lambda s: s + 1e6,
    "scale": lambda s: 1e-300 * s,
    "exp": lambda s: np.exp(s / 2.0),
    "cube": lambda s: s**3,
    "logistic": lambda s: 1.0 / (1.0 + np.exp(-s / 2.0)),
    "single precision": lambda s: s.astype(np.float32) / 3,
}


def columns(rows: list[tuple[int, int]] | Rows) -> tuple[np.ndarray, np.ndarray]:
    first, second = zip(*rows, strict=True)
    return np.array(first), np.array(second)


def shuffled(rows: Pairs | Rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(rows))
    first, second = columns(rows)
    return first[order], second[order]


# -- the geometric mean ---------------------------------------------------------------------------


@given(PAIRS)
def test_g_mean_is_between_the_recalls(rows: Pairs) -> None:
    y_true, y_pred = columns(rows)
    recalls = [np.mean(y_pred[y_true == c] == c) for c in np.unique(y_true)]
    value = g_mean_score(y_true, y_pred)
    assert 0.0 <= value <= 1.0
    assert min(recalls) - 1e-12 <= value <= np.mean(recalls) + 1e-12, "no mean of the recalls"
    assert (value == 1.0) == all(t == p for t, p in rows), "1 is for no mistake at all"
    assert (value == 0.0) == (min(recalls) == 0.0), "0 is for a class that is never found"


@given(PAIRS, st.integers(0, 2**32 - 1))
def test_g_mean_does_not_depend_on_the_order_of_rows(rows: Pairs, seed: int) -> None:
    assert g_mean_score(*shuffled(rows, seed)) == g_mean_score(*columns(rows))


@given(PAIRS, st.permutations("wxyz"))
def test_g_mean_does_not_depend_on_the_names(rows: Pairs, names: list[str]) -> None:
    y_true, y_pred = (np.array(names)[labels] for labels in columns(rows))
    expected = g_mean_score(*columns(rows))
    assert g_mean_score(y_true, y_pred) == pytest.approx(expected, rel=1e-12)
    y_true, y_pred = y_true.astype(object), y_pred.astype(object)
    assert g_mean_score(y_true, y_pred) == pytest.approx(expected, rel=1e-12)


@given(PAIRS, st.data())
def test_a_weight_is_that_many_rows(rows: Pairs, data: st.DataObject) -> None:
    counts = data.draw(
        st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)).filter(any)
    )
    y_true, y_pred = columns(rows)
    repeated = g_mean_score(np.repeat(y_true, counts), np.repeat(y_pred, counts))
    assert g_mean_score(y_true, y_pred, sample_weight=counts) == repeated


@given(PAIRS)
def test_labels_that_name_every_class_change_nothing(rows: Pairs) -> None:
    y_true, y_pred = columns(rows)
    assert g_mean_score(y_true, y_pred, labels=np.unique(y_true)) == g_mean_score(y_true, y_pred)


# -- the break-even point -------------------------------------------------------------------------


@given(ROWS)
def test_prbep_is_between_its_bounds(rows: Rows) -> None:
    """With few negatives the n_pos rows on top cannot all be negative: 2 - n / n_pos at least."""
    y_true, y_score = columns(rows)
    n_pos = int(y_true.sum())
    value = prbep_score(y_true, y_score, pos_label=True)
    assert max(0.0, 2 - len(rows) / n_pos) - 1e-12 <= value <= 1.0
    lowest = y_score[y_true].min()
    separated = all(score < lowest for positive, score in rows if not positive)
    assert (value == 1.0) == separated, "1 is for all positives above all negatives"


@given(ROWS, st.integers(0, 2**32 - 1))
def test_prbep_does_not_depend_on_the_order_of_rows(rows: Rows, seed: int) -> None:
    expected = prbep_score(*columns(rows), pos_label=True)
    assert prbep_score(*shuffled(rows, seed), pos_label=True) == expected, "ties go by row"


@pytest.mark.parametrize("name", RISING)
@given(rows=RANKS)
def test_prbep_depends_on_the_ranks_alone(name: str, rows: Rows) -> None:
    y_true, y_score = columns(rows)
    mapped = RISING[name](y_score)
    assert len(np.unique(mapped)) == len(np.unique(y_score)), f"{name} merges scores"
    expected = prbep_score(y_true, y_score, pos_label=True)
    assert prbep_score(y_true, mapped, pos_label=True) == expected, name


@given(ROWS)
def test_raising_a_positive_never_lowers_prbep(rows: Rows) -> None:
    y_true, y_score = columns(rows)
    raised = y_score.copy()
    raised[np.flatnonzero(y_true)[0]] = np.inf
    before = prbep_score(y_true, y_score, pos_label=True)
    assert prbep_score(y_true, raised, pos_label=True) >= before - 1e-12


@given(ROWS)
def test_equal_scores_give_the_share_of_positives(rows: Rows) -> None:
    y_true, _ = columns(rows)
    value = prbep_score(y_true, np.zeros(len(rows)), pos_label=True)
    assert value == pytest.approx(y_true.mean(), rel=1e-12)
