"""Selection of C and gamma by cross-validation on a part of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray

from marginwise import OnlineSVCCV
from marginwise._arrays import Ints
from marginwise._checks import check_params
from marginwise.cli.group import usage
from marginwise.cli.options import Function, Values, packed
from marginwise.cli.output import Console
from marginwise.cli.recipes import Recipe

OF_KERNEL = ("kernel", "degree", "coef0", "class_weight", "multiclass", "cache_size")
ROWS = 10_000


@dataclass(frozen=True)
class Tuning:
    """Settings of the selection of C and gamma.

    Parameters
    ----------
    tune : bool or None
        Whether to select C and gamma; None means if neither is given.
    cv : int or None
        Number of folds. If it is given without a selection, the error is still estimated.
    rows : int
        Maximum number of rows for the search.
    Cs, gammas, scoring, search
        Parameters of OnlineSVCCV.
    """

    tune: bool | None = None
    cv: int | None = None
    rows: int = ROWS
    Cs: Any = 7
    gammas: Any = 5
    scoring: str | None = None
    search: Literal["grid", "halving"] = "grid"

    def is_due(self, recipe: Recipe) -> bool:
        """Return whether to select parameters or estimate the error."""
        given = recipe.parameters.keys() & {"C", "gamma"}
        wanted = not given if self.tune is None else self.tune
        return recipe.classifies and (wanted or self.cv is not None)

    def make(self, recipe: Recipe, console: Console, features: int) -> OnlineSVCCV:
        """Return a search over the parameters that were not given."""
        given = recipe.parameters
        same = {key: given[key] for key in OF_KERNEL if key in given}
        fixed = self.tune is False or (self.tune is None and given.keys() & {"C", "gamma"})
        Cs = [given["C"]] if "C" in given else [1.0] if fixed else self.Cs
        gammas = 1 if fixed else self.gammas
        if given.get("gamma", "scale") != "scale":
            gammas = [1 / features if given["gamma"] == "auto" else given["gamma"]]
        model = OnlineSVCCV(
            Cs=Cs,
            gammas=gammas,
            cv=self.cv or 5,
            scoring=self.scoring,
            search=self.search,
            random_state=recipe.seed,
            n_jobs=recipe.threads,
            verbose=console.verbose,
            **same,
        )
        with usage():
            check_params(model)
        return model


def tuning_options(*, all_of_them: bool) -> Callable[[Function], Function]:
    """Return a decorator that adds the argument `tuning`."""
    options: list[click.Option] = [
        click.Option(
            ["--cv", "-v"],
            type=click.IntRange(2),
            help=("Number of cross-validation folds.  [default: 5]"),
        ),
        click.Option(
            ["--tune-rows", "rows"],
            type=click.IntRange(4),
            default=ROWS,
            show_default=True,
            help=(
                "Maximum number of rows for the search; larger data are sampled with "
                "stratification."
            ),
        ),
        *_of_search(),
    ]
    if not all_of_them:
        switch = click.Option(
            ["--tune/--no-tune"],
            default=None,
            help="Whether to select C and gamma, or the one that is not given, by "
            "cross-validation.  [default: if neither is given]",
        )
        return packed("tuning", Tuning, [switch, *options])
    return packed("tuning", lambda **given: Tuning(tune=True, **given), options)


def _of_search() -> list[click.Option]:
    count = "the number of values on a logarithmic grid, or a list such as 1,10,100"
    return [
        click.Option(
            ["--Cs", "Cs"],
            type=Values(),
            default=7,
            show_default=True,
            help=f"Values of C to try: {count}.",
        ),
        click.Option(
            ["--gammas"],
            type=Values(),
            default=5,
            show_default=True,
            help=f"Values of gamma to try: {count}.",
        ),
        click.Option(["--scoring"], help="Name of the scikit-learn score to maximize."),
        click.Option(
            ["--search"],
            type=click.Choice(["grid", "halving"]),
            default="grid",
            show_default=True,
            help=(
                "grid evaluates every pair on all rows; halving eliminates pairs early on a part "
                "of the rows."
            ),
        ),
    ]


def searched(
    X: Any,
    y: NDArray[Any],
    recipe: Recipe,
    tuning: Tuning,
    console: Console,
    scored: NDArray[np.bool_] | None = None,
) -> OnlineSVCCV | None:
    """Return a fitted search, or None if the rows cannot be split into folds.

    Candidates are scored on the rows `scored`, by default on all. Other rows are only learned.
    """
    classes, counts = np.unique(y, return_counts=True)
    if np.sum(counts > 1) < 2 or X.shape[0] < 4:
        console.say(
            "C and gamma are not tuned, because this requires two classes with at least two rows "
            "each."
        )
        return None
    model = tuning.make(recipe, console, X.shape[1])
    model.cv = min(model.cv, int(counts.max()))
    splittable = np.isin(y, classes[counts > 1])
    if scored is not None:
        model.cv = drawn_folds(y[splittable], scored[splittable], model.cv, recipe.seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return model.fit(X[splittable], y[splittable])


def drawn_folds(
    y: NDArray[Any], drawn: NDArray[np.bool_], folds: int, seed: int
) -> list[tuple[Ints, Ints]]:
    """Return cross-validation splits that test only some rows, with stratification."""
    rows = np.flatnonzero(drawn)
    rows = rows[sampled(y[rows], len(rows), seed)]
    # Rows of one class are dealt out one after the other, so that each fold has its share.
    dealt = rows[np.argsort(y[rows], kind="stable")]
    tests = [np.sort(dealt[k::folds]) for k in range(min(folds, len(dealt)))]
    return [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests]


def sampled(y: NDArray[Any], rows: int, seed: int) -> Ints:
    """Return a stratified sample of the rows, in random order because files may be sorted."""
    order = np.random.RandomState(seed).permutation(len(y))
    _, codes, sizes = np.unique(y[order], return_inverse=True, return_counts=True)
    by_class = np.argsort(codes, kind="stable")
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(y))
    rank[by_class] = np.arange(len(y)) - starts[codes[by_class]]
    first = np.argsort(rank / sizes[codes], kind="stable")[:rows]
    return np.asarray(order[np.sort(first)], dtype=np.int64)


def chosen(search: OnlineSVCCV | None, recipe: Recipe) -> dict[str, Any]:
    """Return the parameters of a recipe that a search selected."""
    if search is None:
        return {}
    found = {"C": search.C_}
    if recipe.parameters.get("kernel", "rbf") in ("rbf", "poly", "sigmoid"):
        found["gamma"] = search.gamma
    return found


def report_of(search: OnlineSVCCV) -> dict[str, Any]:
    """Return the best score of a search, for printing."""
    score, folds = search.best_score_, search.cv
    if search.scoring is None:
        return {"cv_error": 1 - score, "cv_folds": folds}
    return {"cv_score": score, "cv_scoring": search.scoring, "cv_folds": folds}


def table_of(search: OnlineSVCCV) -> list[dict[str, Any]]:
    """Return the evaluated pairs, with the mean and the standard deviation of their scores."""
    found = search.cv_results_
    return [
        {
            **parameters,
            "score": float(found["mean_test_score"][k]),
            "deviation": float(found["std_test_score"][k]),
            "rank": int(found["rank_test_score"][k]),
        }
        for k, parameters in enumerate(found["params"])
    ]
