"""LASVM-G and its kin [ertekin2011] worked by hand on one to four points, and what they promise.

Signed alpha, no bias; g = y - f. PROCESS moves the new example by clip(g / K, lo - alpha,
hi - alpha); REPROCESS moves the members of largest and least g to the best point of their two
boxes. The gap is the sum over members of max(lo g, hi g) - alpha g, its threshold max(C, target),
target^2 = sum h^2 - (sum h)^2 / l with h = C y g before PROCESS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginwise import GapSVC
from tests.support import blobs, rings

E = np.eye(4)  # orthogonal unit vectors: with the linear kernel, K is the identity


def learner(**params: Any) -> GapSVC:
    return GapSVC(**{"kernel": "linear", "C": 10.0, **params})


def feed(model: Any, *examples: tuple[Any, int], **more: Any) -> Any:
    """Give examples (x, y) one at a time; a number stands for a row of one feature."""
    for x, y in examples:
        model.partial_fit([np.atleast_1d(x)], [y], classes=[-1, 1], **more)
    return model


def coefficients(model: Any, problem: int = 0) -> dict[int, float]:
    """alpha of all examples that a model holds, by id; 0 where they are no support vectors."""
    support = dict(zip(model.support_.tolist(), model.dual_coef_[problem].tolist(), strict=True))
    return {id_: support.get(id_, 0.0) for id_ in sorted(model.ids_.tolist())}


# -- PROCESS --------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [+1, -1])
def test_one_example(y: int) -> None:
    # x = 2, K = 4: alpha = y/4, so that w = y/2 and y f(2) = 1.
    model = feed(learner(), (2.0, y))
    assert coefficients(model) == {0: y / 4}
    assert model.decision_function([[2.0], [1.0]]).tolist() == [y, y / 2]
    assert model.intercept_.tolist() == [0.0]
    assert model.dual_objective() == 1 / 4 - 1 / 8


def test_step_ends_at_the_side_of_the_box() -> None:
    # C = 1/4 < g / K = 1
    model = feed(learner(C=0.25), (1.0, +1))
    assert coefficients(model) == {0: 0.25}
    assert model.dual_objective() == 0.25 - 1 / 32


def test_weights_scale_the_box() -> None:
    model = feed(learner(), (1.0, +1), sample_weight=[0.025])
    assert coefficients(model) == {0: 0.25}


def test_example_beyond_the_margin_is_held_with_no_weight() -> None:
    # w = 1: f(3) = 3, g = -2, but alpha is at 0 already.
    model = feed(learner(), (1.0, +1), (3.0, +1))
    assert coefficients(model) == {0: 1.0, 1: 0.0}
    assert model.support_.tolist() == [0]
    assert model.n_support_.tolist() == [0, 1]


def test_there_is_no_bias() -> None:
    """Examples of one class are learned at once; f(0) is 0 whatever the labels."""
    model = feed(learner(), (E[0], +1), (E[1], +1))
    assert coefficients(model) == {0: 1.0, 1: 1.0}
    assert model.decision_function(np.zeros((1, 4))).tolist() == [0.0]


# -- REPROCESS ------------------------------------------------------------------------------------


def test_reprocess_brings_both_to_the_margin() -> None:
    # x = (1, 0), y = +1: alpha_0 = 1. x = (1, 1/2), y = -1: f = 1, g = -2, K = 5/4,
    # alpha_1 = -8/5, w = (-3/5, -4/5), g = (8/5, 0), gap (10 - 1) 8/5 = 14.4 > C = 10.
    # REPROCESS: both g become 0 at w = (1, -4) = 9 x_0 - 8 x_1, within the boxes.
    model = feed(learner(), ([1.0, 0.0], +1), ([1.0, 0.5], -1))
    assert coefficients(model) == pytest.approx({0: 9.0, 1: -8.0}, rel=1e-12)
    assert model.stats_["reprocess"] == 1
    assert model.decision_function([[1.0, 0.0], [1.0, 0.5]]) == pytest.approx([1.0, -1.0])


def test_reprocess_stays_in_both_boxes() -> None:
    # The same with C = 5: gap (5 - 1) 8/5 = 6.4 > 5. By u and v the dual gains
    # 8/5 u - (u^2 + 2 u v + 5/4 v^2) / 2, u <= 4, v >= -3.4. At u = 4 the best v is -3.2, with a
    # gain of 4.8; at v = -3.4 it is u = 4, cut from 5, with 4.775.
    model = feed(learner(C=5.0), ([1.0, 0.0], +1), ([1.0, 0.5], -1))
    assert coefficients(model) == pytest.approx({0: 5.0, 1: -4.8}, rel=1e-12)
    assert model.stats_["reprocess"] == 1


def test_reprocess_of_one_point_with_two_labels() -> None:
    # x = 1, y = +1: w = 1; the same with y = -1: alpha_1 = -2, w = -1, g_0 = 2, gap 18 > 10. The
    # dual gains 2 u - (u + v)^2 / 2, u <= 9, v >= -8: both go to their sides, w = 0.
    model = feed(learner(), (1.0, +1), (1.0, -1))
    assert coefficients(model) == {0: 10.0, 1: -10.0}
    assert model.stats_["reprocess"] == 1


def test_gap_within_c_is_left_alone() -> None:
    # x = (1, 1), y = -1 instead: K = 2, alpha_1 = -1, w = (0, -1), g = (1, 0), gap 9 <= 10.
    model = feed(learner(), ([1.0, 0.0], +1), ([1.0, 1.0], -1))
    assert coefficients(model) == {0: 1.0, 1: -1.0}
    assert model.stats_["reprocess"] == 0


def test_gap_within_the_target_is_left_alone() -> None:
    # C = 1. x = 1, y = +1: alpha = 1 = C. x = 1, y = -1: g = -2, alpha = -1 = -C, w = 0. x = 2,
    # y = +1: alpha = 1/4, w = 1/2, g = (1/2, -3/2, 0): h = (1/2, 3/2, 0), target^2 = 5/2 - 4/3,
    # target = 1.08. x = 11/16, y = -1: f = 11/32, g / K = -2.8: alpha = -1, w = -3/16. Those at
    # their sides have no gap; that of x = 2 is (1 - 1/4) (1 + 3/8) = 1.03: above C, within target.
    model = feed(learner(C=1.0), (1.0, +1), (1.0, -1), (2.0, +1), (0.6875, -1))
    assert coefficients(model) == {0: 1.0, 1: -1.0, 2: 0.25, 3: -1.0}
    assert model.stats_["reprocess"] == 0


def test_example_held_already_is_not_inserted_again() -> None:
    model = feed(learner(), (1.0, +1), (1.0, -1))
    model.partial_fit([[1.0]], [1], ids=[0])
    assert coefficients(model) == {0: 10.0, 1: -10.0}


# -- the ramp loss and the filter -----------------------------------------------------------------

# Five of each class, which are learned whatever the loss: alpha_0 = 1 and alpha_5 = -1; the others
# have g = 0. They know nothing of e_0, where id 10 makes f(x e_0) = x.
SEEDS = (*[(E[1], +1)] * 5, *[(E[2], -1)] * 5)
SEEDED = (*SEEDS, (E[0], +1))


def moved(model: GapSVC) -> dict[int, float]:
    """alpha of the members after the seeds."""
    return {id_: alpha for id_, alpha in coefficients(model).items() if id_ >= len(SEEDS)}


@pytest.mark.parametrize("loss", ["ramp", "filter"])
def test_first_five_of_each_class_are_just_learned(loss: str) -> None:
    # w = 1. x = 3, y = +1 is beyond the ramp: held as a seed with alpha = 0, and skipped by the
    # filter from the sixth on. x = 2, y = -1 has y f = -2: learned as a seed all the same.
    model = feed(learner(loss=loss), (1.0, +1), *[(3.0, +1)] * 7)
    assert list(coefficients(model)) == list(range(8 if loss == "ramp" else 5))
    feed(model, (2.0, -1))
    assert coefficients(model)[8] < 0


def test_ramp_keeps_an_example_that_is_far_off_at_zero() -> None:
    # y f = -2 < -1: the box is [-10, 0] + 10, and g = -3: no step.
    model = feed(learner(loss="ramp"), *SEEDED, (2 * E[0], -1))
    assert moved(model) == {10: 1.0, 11: 0.0}


def test_ramp_learns_an_example_that_is_not_far_off() -> None:
    # x = (1/2, 0, 0, 3/2), y = -1: y f = -1/2, g = -3/2, K = 5/2: alpha = -3/5. w_0 = 7/10, and the
    # gap of id 10, (10 - 1) 3/10, is within C.
    model = feed(learner(loss="ramp"), *SEEDED, ([0.5, 0.0, 0.0, 1.5], -1))
    assert moved(model) == pytest.approx({10: 1.0, 11: -0.6}, rel=1e-12)


def test_at_the_ramp_itself_the_loss_is_the_hinge() -> None:
    # y f = -1 exactly
    hinge = moved(feed(learner(), *SEEDED, (E[0], -1)))
    assert hinge[11] < 0
    assert moved(feed(learner(loss="ramp"), *SEEDED, (E[0], -1))) == hinge
    assert moved(feed(learner(loss="filter"), *SEEDED, (E[0], -1))) == hinge


@pytest.mark.parametrize(
    ("x", "y", "taken"),
    [
        (3.0, +1, False),  # y f = 3 > 1
        (1.0, +1, True),  # y f = 1
        (0.5, +1, True),
        (2.0, -1, False),  # y f = -2 < -1
        (1.0, -1, True),  # y f = -1
    ],
)
def test_filter_takes_examples_on_the_ramp_only(x: float, y: int, taken: bool) -> None:
    model = feed(learner(loss="filter"), *SEEDED, (x * E[0], y))
    assert (11 in moved(model)) is taken


# -- suspects -------------------------------------------------------------------------------------


def suspects(model: Any) -> list[tuple[Any, ...]]:
    return [tuple(suspect) for suspect in model.suspects_.tolist()]


def test_suspects_of_the_filter_are_what_it_met() -> None:
    # f(x e_0) = x: y f = -2 and -3.
    model = feed(learner(loss="filter"), *SEEDED, (2 * E[0], -1), (3 * E[0], -1))
    assert suspects(model) == [(12, -1, -3.0), (11, -1, -2.0)]
    # x = (1/2, 0, 0, 3/2), y = -1 makes f(x e_0) = 7/10 x. Only id 12 is visited again.
    feed(model, ([0.5, 0.0, 0.0, 1.5], -1))
    model.partial_fit([3 * E[0]], [-1], ids=[12])
    assert suspects(model) == [(12, -1, pytest.approx(-2.1)), (11, -1, -2.0)]
    model.partial_fit([3 * E[0]], [+1], ids=[12])  # with the right label
    assert suspects(model) == [(11, -1, -2.0)]


def test_suspects_that_are_stored_are_judged_by_the_model() -> None:
    # y f = -2 on arrival, and -7/5 after the next row.
    model = feed(learner(loss="ramp"), *SEEDED, (2 * E[0], -1))
    assert suspects(model) == [(11, -1, -2.0)]
    feed(model, ([0.5, 0.0, 0.0, 1.5], -1))
    assert suspects(model) == [(11, -1, pytest.approx(-1.4))]
    # x = (1, 0, 0, 1), y = -1: w = (7/10, ..., -9/10), f = -1/5, g = -4/5, K = 2, alpha = -2/5:
    # w_0 = 3/10, and y f(2 e_0) = -3/5 is above the ramp.
    feed(model, ([1.0, 0.0, 0.0, 1.0], -1))
    assert model.decision_function([2 * E[0]]) == pytest.approx([0.6])
    assert suspects(model) == []


def test_suspects_that_clean_drops_stay() -> None:
    # x = -4 e_0, y = +1 is dropped as above, with y f = -4; x = 2 e_0, y = -1 is 3 away, and stays.
    model = feed(
        learner(loss="ramp", clean_every=13, max_idle=9), *SEEDED, (-4 * E[0], +1), (2 * E[0], -1)
    )
    assert moved(model) == {10: 1.0, 12: 0.0}
    assert suspects(model) == [(11, 1, -4.0), (12, -1, -2.0)]


def test_suspects_of_several_classes_have_their_least_value() -> None:
    # K = I: f_c(e_k) is 1 for c = k and -1 elsewhere. 2 e_0 as "b" has y f = -2 as "a", which it is
    # not, -2 as "b", which it is, and 2 as "c". 3 e_1 + 2 e_0 as "c": y f = -1, -1 and -5.
    model = learner(loss="filter")
    for _ in range(10):  # five seeds of "a", "b" and "c", and ten of the rest, in each problem
        model.partial_fit(E[:3], ["a", "b", "c"], classes=["a", "b", "c"])
    model.partial_fit([2 * E[0]], ["b"], ids=[100])
    model.partial_fit([2 * E[0] + 3 * E[1]], ["c"], ids=[200])
    assert suspects(model) == [(200, "c", -5.0), (100, "b", -2.0)]
    assert model.suspects_["label"].dtype == model.classes_.dtype


def test_the_hinge_suspects_nothing() -> None:
    model = feed(learner(), *SEEDED, (2 * E[0], -1))
    assert not hasattr(model, "suspects_")
    with pytest.raises(AttributeError, match="requires loss='ramp' or loss='filter'"):
        model.suspects_  # noqa: B018


# -- CLEAN ----------------------------------------------------------------------------------------

IDLE = ((1.0, +1), (3.0, +1), (2.0, +1), (4.0, +1))  # w = 1: y g = 0, -2, -1, -3


@pytest.mark.parametrize(
    ("max_idle", "kept"), [(0, [0]), (1, [0, 2]), (2, [0, 1, 2]), (3, [0, 1, 2, 3])]
)
def test_clean_keeps_the_idle_that_are_nearest(max_idle: int, kept: list[int]) -> None:
    model = feed(learner(clean_every=4, max_idle=max_idle), *IDLE[:3])
    assert coefficients(model) == {0: 1.0, 1: 0.0, 2: 0.0}, "too early"
    feed(model, IDLE[3])
    assert list(coefficients(model)) == kept


def test_clean_counts_examples_that_the_filter_skips() -> None:
    # Of x = 3 four are seeds, the other three are skipped.
    model = feed(learner(loss="filter", clean_every=8, max_idle=0), (1.0, +1), *[(3.0, +1)] * 6)
    assert list(coefficients(model)) == [0, 1, 2, 3, 4]
    assert coefficients(feed(model, (3.0, +1))) == {0: 1.0}


def test_clean_drops_what_is_farthest_from_moving() -> None:
    # x = -4 e_0, y = +1: y f = -4, so its box is [-10, 0] and g = 5 must fall below 0 to move it:
    # 5 away. x = 3 e_0, y = +1: g = -2 must rise above 0: 2 away. Eight idle seeds have g = 0.
    model = feed(
        learner(loss="ramp", clean_every=13, max_idle=9), *SEEDED, (-4 * E[0], +1), (3 * E[0], +1)
    )
    assert moved(model) == {10: 1.0, 12: 0.0}
    assert len(model.ids_) == 12


def test_full_never_cleans() -> None:
    model = feed(learner(clean_every=None, max_idle=0), *IDLE)
    assert list(coefficients(model)) == [0, 1, 2, 3]


# -- several classes ------------------------------------------------------------------------------


def test_three_classes_are_three_problems() -> None:
    # K = I: in each problem each example goes to alpha = y.
    model = learner()
    for k in range(3):
        model.partial_fit(E[k : k + 1], [k], classes=[0, 1, 2])
    assert model.dual_coef_.tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert model.predict(E[:3]).tolist() == [0, 1, 2]
    assert model.intercept_.tolist() == [0.0, 0.0, 0.0]


# -- what they promise ----------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_ramp_and_filter_need_fewer_support_vectors_under_wrong_labels(C: float, seed: int) -> None:
    X, y = rings(600, seed, noise=0.2)
    X_test, y_test = rings(500, seed + 1)
    count, score = {}, {}
    for loss in ("hinge", "ramp", "filter"):
        model = GapSVC(loss=loss, C=C, gamma=1.0, random_state=seed).fit(X, y)
        count[loss], score[loss] = int(model.n_support_.sum()), model.score(X_test, y_test)
    assert count["ramp"] < 0.8 * count["hinge"]
    assert count["filter"] < 0.8 * count["hinge"]
    assert min(score["ramp"], score["filter"]) > score["hinge"] - 0.05


def test_full_keeps_everything(seed: int) -> None:
    X, y = rings(500, seed, noise=0.2)
    model = GapSVC(clean_every=None, C=5.0, gamma=1.0, random_state=seed).fit(X, y)
    assert sorted(model.ids_.tolist()) == list(range(500))


def test_members_right_after_clean(seed: int) -> None:
    """Up to the first CLEAN all is as without; then the idle nearest to the margin are left."""
    X, y = rings(300, seed, noise=0.1)
    params: dict[str, Any] = {"C": 5.0, "gamma": 1.0, "shuffle": False, "finish_at_end": False}
    full = GapSVC(clean_every=None, **params).fit(X, y)
    model = GapSVC(clean_every=300, max_idle=20, **params).fit(X, y)
    np.testing.assert_array_equal(np.sort(model.support_), np.sort(full.support_))
    idle = np.setdiff1d(full.ids_, full.support_)
    beyond = np.where(y, 1.0, -1.0) * full.decision_function(X)
    nearest = idle[np.argsort(beyond[idle])[:20]]
    assert sorted(np.setdiff1d(model.ids_, model.support_)) == sorted(nearest)


@pytest.mark.parametrize("classes", [2, 3])
def test_history_has_a_value_for_each_example(classes: int, seed: int) -> None:
    X, y = blobs(200, seed, classes)
    model = GapSVC(C=5.0, gamma=0.5, clean_every=50, max_idle=10, record=True, shuffle=False)
    model.fit(X, y)
    shape = (200,) if classes == 2 else (200, classes)
    assert set(model.history_) == {"gap", "members", "kernel_evaluations"}
    assert all(np.shape(values) == shape for values in model.history_.values())
    gaps, members, evaluations = (np.asarray(model.history_[k]) for k in model.history_)
    assert np.all(gaps >= -1e-9), "the primal is never below the dual"
    assert np.all(members >= 0)
    assert np.all(np.diff(evaluations, axis=0) >= 0)
    assert np.all(np.diff(members, axis=0)[~np.isin(np.arange(1, 200), [49, 99, 149, 199])] <= 1)


def test_history_is_kept_only_where_asked() -> None:
    X, y = rings(50, 0)
    assert not hasattr(GapSVC().fit(X, y), "history_")


def test_gap_stays_within_its_threshold_unless_nothing_can_move(seed: int) -> None:
    """With FULL all rows are members, so the gap over members is that of all rows so far."""
    X, y = rings(150, seed, noise=0.2)
    model = GapSVC(C=10.0, gamma=1.0, clean_every=None)
    signs = np.where(y, 1.0, -1.0)
    target = 0.0
    for k in range(150):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        f = model.decision_function(X[: k + 1])
        gap = model.duality_gap(X[: k + 1], y[: k + 1])
        assert gap <= max(10.0, target) * (1 + 1e-5)
        h = 10.0 * (1 - signs[: k + 1] * f)
        target = float(np.sqrt(max(0.0, h @ h - h.sum() ** 2 / (k + 1))))


# -- finish ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "ramp", "filter"])
def test_finish_leaves_no_violation(loss: str) -> None:
    """After finish() no member that may move has |g| > tol; the dual has grown, nobody was lost."""
    X, y = rings(400, seed=3)
    model = GapSVC(C=20.0, gamma=1.0, loss=loss, finish_at_end=False, random_state=0).fit(X, y)
    before, held = model.dual_objective(), model.ids_.tolist()
    state = model.finish()._engine.state()
    g, alpha, box = state["g"][0], state["alpha"][0], state["box"][0]
    sides = 20.0 * model._engine.signs(state["labels"])[:, 0]
    shift = np.where(box == 1, sides, 0.0)
    may_rise = alpha < np.maximum(sides, 0.0) - shift
    may_fall = alpha > np.minimum(sides, 0.0) - shift
    members = state["rank"][0] >= 0
    assert g[members & may_rise].max(initial=0.0) <= model.tol
    assert g[members & may_fall].min(initial=0.0) >= -model.tol
    assert model.dual_objective() >= before
    assert model.ids_.tolist() == held
