"""One pass ends near the solution of `SVC` whatever the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from marginwise import OnlineSVC
from tests.support import Rows

N = 10_000
X, Y = make_moons(2 * N, noise=0.2, random_state=0)
PARAMS: dict[str, Any] = {"C": 10, "gamma": 2.0}
LIMIT = SVC(**PARAMS).fit(X[:N], Y[:N]).score(X[N:], Y[N:]) - 0.006


# Seeds 3, 9 and 12 once ended up to 6 points below `SVC`: rows had been passed over by an early
# model, which later rows changed, and were not judged again.
@pytest.mark.parametrize("seed", range(16))
def test_one_pass_is_as_accurate_for_every_order(seed: int) -> None:
    model = OnlineSVC(**PARAMS, random_state=seed).fit(X[:N], Y[:N])
    assert model.score(X[N:], Y[N:]) >= LIMIT


@pytest.mark.parametrize("seed", [3, 9, 12])
def test_so_is_a_pass_over_blocks(seed: int) -> None:
    source = Rows(X[:N], Y[:N])
    source.block = 1024  # type: ignore[attr-defined]
    model = OnlineSVC(**PARAMS, random_state=seed).learn_from(source)
    assert model.score(X[N:], Y[N:]) >= LIMIT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_so_are_several_classes(seed: int, multiclass: Any) -> None:
    X3, y3 = np.vstack([X, X + np.array([0, 2.5])]), np.concatenate([Y, Y + 2])
    train, test = np.r_[:N, 2 * N : 3 * N], np.r_[N : 2 * N, 3 * N : 4 * N]
    model = OnlineSVC(**PARAMS, multiclass=multiclass, random_state=seed).fit(X3[train], y3[train])
    exact = OnlineSVC(**PARAMS, multiclass=multiclass, epochs="converge").fit(X3[train], y3[train])
    assert model.score(X3[test], y3[test]) >= exact.score(X3[test], y3[test]) - 0.006
