"""Error of a model of a label store, estimated on answers that were drawn at random.

A model that chooses its questions asks about difficult items, so its other answers say little about
the error on new items.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints
from marginwise.active.recall import binomial_bounds
from marginwise.cli.jobs import Job
from marginwise.cli.output import Console
from marginwise.cli.tuning import Tuning, chosen, drawn_folds, sampled, searched
from marginwise.label.events import Answers

DRAWN = {"random", "holdout", "overlap"}  # purposes of questions that no model chose
Bools = NDArray[np.bool_]
LEAST = 10  # answers for an estimate of the error
ENOUGH = 50  # answers for a search that only they score
FOLDS = 5


def drawn_at_random(answers: Answers, items: list[str], complete: bool) -> Bools:
    """Return which items were asked about at random; all if every item has an answer."""
    return np.array([complete or bool(DRAWN & answers.purposes(item)) for item in items])


def scoring(drawn: Bools | None, tuning: Tuning) -> Bools | None:
    """Return the rows that score the candidates of a search; None for all."""
    if drawn is None or tuning.search == "halving" or np.count_nonzero(drawn) < ENOUGH:
        return None
    return drawn


def described_search(drawn: Bools, tuning: Tuning) -> str:
    """Return which answers score the candidates of a search, and why."""
    count = np.count_nonzero(drawn)
    if count == len(drawn):
        return f"all {count:,} answers"
    if scoring(drawn, tuning) is not None:
        return f"the {count:,} answers that were drawn at random"
    if tuning.search == "halving":
        return f"all {len(drawn):,} answers, because of --search halving"
    return f"all {len(drawn):,} answers, because only {count:,} of them were drawn at random"


def estimated_error(
    X: Any, y: NDArray[Any], drawn: Bools, job: Job, console: Console
) -> dict[str, Any]:
    """Return the error on answers that were drawn at random, with bounds, for the report.

    Each of these answers is predicted by a model of the others, whose C and gamma are selected
    without it.
    """
    count = int(np.count_nonzero(drawn))
    found = {"searched_on": described_search(drawn, job.tuning), "error_rows": count}
    if count < LEAST:
        console.say(
            f"there is no honest estimate of the error: {count:,} of {len(y):,} answers were drawn "
            f"at random, expected {LEAST} or more. Label with --holdout 0.1, or test the model on "
            "other labelled data."
        )
        return found | {"error": None}
    console.say(f"estimating the error on {count:,} answers that were drawn at random")
    folds = drawn_folds(y, drawn, job.tuning.cv or FOLDS, job.recipe.seed)
    wrong = sum(
        int(np.count_nonzero(_predicted(X, y, drawn, learned, X[tested], job) != y[tested]))
        for learned, tested in folds
    )
    low, high = binomial_bounds(wrong, count)
    return found | {"error": wrong / count, "error_low": low, "error_high": high}


def _predicted(
    X: Any, y: NDArray[Any], drawn: Bools, learned: Ints, rows: Any, job: Job
) -> NDArray[Any]:
    """Return the predictions of a model that selects its parameters and learns on some answers."""
    recipe, tuning, quiet = job.recipe, job.tuning, Console(quiet=True)
    if len(np.unique(y[learned])) < 2:
        return np.full(rows.shape[0], y[learned[0]])
    some = learned[sampled(y[learned], tuning.rows, recipe.seed)]
    scored = None if scoring(drawn, tuning) is None else drawn[some]
    search = searched(X[some], y[some], recipe, tuning, quiet, scored)
    recipe = replace(recipe, parameters={**recipe.parameters, **chosen(search, recipe)})
    model = recipe.make(quiet).fit(X[learned], y[learned])
    return np.asarray(model.predict(rows))
