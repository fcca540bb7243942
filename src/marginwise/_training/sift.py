"""Sifting: finding the rows worth learning without computing all of their decision values.

Rows are evaluated chunk by chunk, with the model at the beginning of the chunk. A *sketch* is a sum
over a few members, fitted to the model's decision values. It shows that most rows are far from the
margin of a class. Only for the other rows is the decision value of that class computed from all of
its members. The selection rule then chooses rows, which are learned exactly.

This involves two approximations: the sketch may misjudge a row as far from the margin, and decision
values refer to the beginning of the chunk. The error rate of the sketch is measured continuously:
some of the rows that it rejects are evaluated nevertheless.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from marginwise._arrays import Float
from marginwise._checks import integer, is_real
from marginwise._core import ENOUGH_INSIDE, MOST_SAMPLED, Batch
from marginwise._engine.engine import Engine

Single = NDArray[np.float32]
Flags = NDArray[np.uint8]

CHUNK = 16384  # rows that are evaluated with the same state of the model
LEEWAY = 0.1  # added to the margin, because the model changes while it learns a chunk

WORTH_A_SKETCH = 20_000  # members; with fewer, evaluating all of them is faster
CENTRES = 4096  # of a sketch, at most
MEMBERS_A_CENTRE = 10
RIDGE = 1e-2
STALE = 0.25  # fraction of members inserted since the last sketch at which it is rebuilt
HELD_OUT = 8  # one row in HELD_OUT tests the sketch that is fitted to the others
AUDITED = 128  # one row in AUDITED is evaluated regardless of the sketch


@dataclass
class Sketch:
    """Approximation of a model by a few centres."""

    centres: NDArray[Any]  # their features
    coefficients: Float  # problems x centres
    bias: Float
    reach: Float  # per problem: rows with larger scores are rejected
    inserted: int  # counter of the model when the sketch was fitted


_SKETCH_TYPES: dict[str, tuple[type, ...]] = {
    "centres": (np.float32, np.float64),
    **dict.fromkeys(("coefficients", "bias", "reach"), (np.float64,)),
}


@dataclass
class Tally:
    """Counts of sifting so far: of rows, or of pairs of a row and a problem."""

    rows: int = 0
    pairs: int = 0
    asked: int = 0  # pairs whose decision value was computed
    inside: int = 0  # ... of which lie within the margin
    wanted: int = 0  # pairs chosen to be learned
    audited: int = 0  # pairs that the sketch rejects and that were evaluated nevertheless
    wrong: int = 0  # ... of which lie within the margin
    sketches: int = 0

    @property
    def lost(self) -> float:
        """Estimated fraction of the pairs within the margin that the sketch rejected."""
        hidden = self.wrong / self.audited * (self.pairs - self.asked) if self.audited else 0.0
        return hidden / (hidden + self.inside) if hidden else 0.0


def widths(engine: Engine) -> Float:
    """Return the amount by which each margin is widened; minus infinity if not known yet.

    It is δ, or the width of the interval of possible biases while no member is free.
    """
    native = engine.native
    return np.where(native.judges(), np.abs(native.delta()), -np.inf)


def _margin(engine: Engine) -> Float:
    """Return the score of each problem below which a row lies within the margin."""
    return 1.0 + widths(engine) / 2


def choose_centres(members: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the places of the members that become the centres of a sketch."""
    count = min(CENTRES, members // MEMBERS_A_CENTRE)
    return np.sort(rng.choice(members, count, replace=False))


@dataclass
class Sieve:
    """Chooses rows, chunk by chunk."""

    rule: str  # of selection
    pool_size: int
    loss: float  # fraction of rows within the margin that a sketch may reject; 0: no sketch
    seed: int
    tally: Tally = field(default_factory=Tally)
    sketch: Sketch | None = None
    _laid: Any = None  # the centres of the sketch in the core's memory layout,
    _laid_double: bool = False  # ... which depends on its precision

    def choose(self, engine: Engine, batch: Batch, signs: Float) -> Flags:
        """Return which problems should learn which rows of a chunk.

        Parameters
        ----------
        engine
            The model.
        batch
            The rows in its form.
        signs
            Their labels as +1 and -1, one column per problem; 0 if the problem excludes the row.
        """
        scores = self._scores(engine, batch, signs)
        margin = _margin(engine)
        waiting = ~np.isfinite(margin)  # problems without a margin learn all rows
        wanted = np.zeros(scores.shape, dtype=np.uint8)
        for c in range(scores.shape[1]):
            if waiting[c]:
                wanted[:, c] = signs[:, c] != 0
            else:
                wanted[self.picks(scores[:, c], margin[c]), c] = 1
        self.tally.rows += len(scores)
        self.tally.pairs += scores.size
        self.tally.inside += int((scores < margin).sum())
        self.tally.wanted += int(wanted.sum())
        return wanted

    # -- scores: what selection minimises ------------------------------------------------------

    def score(self, f: Single, signs: Float) -> Single:
        by_label = self.rule in ("random", "gradient")
        score = np.full(f.shape, np.inf, dtype=np.float32)
        has_part = signs != 0
        score[has_part] = signs[has_part] * f[has_part] if by_label else np.abs(f[has_part])
        return score

    def _scores(self, engine: Engine, batch: Batch, signs: Float) -> Single:
        """Return the scores of all pairs, infinite for rejected ones."""
        n, problems = signs.shape
        rows = np.arange(n, dtype=np.int64)
        sketchy = self.loss > 0 and engine.native.size >= WORTH_A_SKETCH and not engine.plan.sparse
        if not sketchy or self._is_stale(engine):
            f = engine.native.rough_decision(batch, rows)
            self.tally.asked += f.size
            if sketchy and n >= CHUNK // 2:
                self._draw(engine, batch, f, signs)
            return self.score(f, signs)
        sketch = self.sketch
        assert sketch is not None
        if self._laid is None or self._laid_double != engine.plan.double:
            self._lay_out(engine, sketch.centres)
        rough = engine.native.rough_expansion(
            self._laid, sketch.coefficients, sketch.bias, batch, rows
        )
        asked = self.score(rough, signs) < sketch.reach
        rng = np.random.default_rng([self.seed, self.tally.rows])
        audited = (rng.integers(AUDITED, size=(n, 1)) == 0) & ~asked
        f = np.full((n, problems), np.inf, dtype=np.float32)
        engine.native.rough_decision_where(batch, (asked | audited).astype(np.uint8), f)
        scores = np.where(np.isinf(f), np.inf, self.score(f, signs)).astype(np.float32)
        margin = _margin(engine)
        self.tally.asked += int(asked.sum())
        self.tally.audited += int(audited.sum())
        self.tally.wrong += int((audited & (scores < margin)).sum())
        scores[audited] = np.inf  # the audit must not change what is learned
        return scores

    def _is_stale(self, engine: Engine) -> bool:
        if self.sketch is None:
            return True
        return engine.counters["inserted"] - self.sketch.inserted > STALE * engine.native.size

    # -- picks: the rules of selection ---------------------------------------------------------

    def picks(self, score: Single, margin: float) -> NDArray[np.intp]:
        """Return the rows of a problem to learn."""
        near = score < margin + LEEWAY
        if self.rule == "random":
            return np.flatnonzero(near)
        picks = [
            first + int(np.argmin(score[first:end]))
            for first, end in self._pools(score, margin)
            if near[first:end].any()
        ]
        return np.array(picks, dtype=np.intp)

    def _pools(self, score: Single, margin: float) -> list[tuple[int, int]]:
        """Divide the rows of a chunk into pools; the last one may be incomplete."""
        n = len(score)
        if self.rule != "autoactive":
            return [(k, min(k + self.pool_size, n)) for k in range(0, n, self.pool_size)]
        inside = np.flatnonzero(score < margin)
        pools, first, met = [], 0, 0
        while first < n:
            end = min(first + MOST_SAMPLED, n)
            last = met + ENOUGH_INSIDE - 1
            if last < len(inside) and inside[last] < end:
                end = int(inside[last]) + 1
            pools.append((first, end))
            met = int(np.searchsorted(inside, end))
            first = end
        return pools

    # -- the sketch ----------------------------------------------------------------------------

    def _draw(self, engine: Engine, batch: Batch, f: Single, signs: Float) -> None:
        """Fit a sketch to decision values of a chunk, and set its reach with held-out rows."""
        rng = np.random.default_rng([self.seed, self.tally.rows, 1])
        some = choose_centres(engine.native.size, rng)
        centres = engine.features_of(engine.state())[some]
        laid = self._lay_out(engine, centres)
        values = engine.native.cross_values(laid, batch, np.arange(len(f), dtype=np.int64))
        fitted = self.fit_sketch(values, f, signs, _margin(engine))
        self.sketch = Sketch(centres, *fitted, inserted=engine.counters["inserted"])
        self.tally.sketches += 1

    def fit_sketch(
        self, values: Single, f: Single, signs: Float, margin: Float
    ) -> tuple[Float, Float, Float]:
        """Return the coefficients, the bias and the reach of a sketch.

        Parameters
        ----------
        values : ndarray of shape (rows, centres)
            Kernel values of rows with the centres.
        f : ndarray of shape (rows, problems)
            Decision values of the rows.
        signs : ndarray of shape (rows, problems)
            Their labels as +1 and -1; 0 if the problem excludes the row.
        margin : ndarray of shape (problems,)
            The score below which a row lies within the margin.
        """
        tests = np.arange(len(f)) % HELD_OUT == 0
        bias = f.mean(axis=0, dtype=np.float64)
        known = values[~tests]
        with threadpool_limits(1):  # sums must not depend on the number of processors
            gram = (known.T @ known).astype(np.float64)
            gram[np.diag_indices(values.shape[1])] += RIDGE
            target = known.T @ (f[~tests] - bias).astype(np.float32)
            coefficients = scipy.linalg.solve(gram, target.astype(np.float64), assume_a="pos")
            rough = values[tests] @ coefficients + bias
        scores = self.score(f[tests], signs[tests])
        rough = self.score(rough.astype(np.float32), signs[tests])
        reach = np.array(
            [
                self._reach(rough[:, c][scores[:, c] < margin[c]], margin[c])
                for c in range(f.shape[1])
            ]
        )
        return np.ascontiguousarray(coefficients.T), bias, reach

    def _lay_out(self, engine: Engine, centres: NDArray[Any]) -> Any:
        self._laid_double = engine.plan.double
        self._laid = engine.native.pack_rows(engine.batch(centres))
        return self._laid

    def _reach(self, rough: Single, margin: float) -> float:
        """Return the score that rejects only the accepted fraction of rows within the margin."""
        if len(rough) < 10 or not np.isfinite(margin):
            return np.inf
        return max(float(np.quantile(rough, 1.0 - self.loss)), margin)

    # -- state ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state, from which a sieve continues without a difference."""
        sketch = {} if self.sketch is None else vars(self.sketch)
        return {"loss": self.loss, "tally": asdict(self.tally), "sketch": dict(sketch)}

    @staticmethod
    def check(state: Any, model: dict[str, Any]) -> None:
        """Raise ValueError unless a state is valid for a model."""
        if not isinstance(state, dict) or state.keys() != {"loss", "tally", "sketch"}:
            raise ValueError("it does not state what sifting had done")
        if not is_real(state["loss"]) or not 0 <= state["loss"] < 1:
            raise ValueError("it does not state how sifting was done")
        names = {item.name for item in fields(Tally)}
        counts = state["tally"]
        if not isinstance(counts, dict) or counts.keys() != names:
            raise ValueError("it does not state what sifting had counted")
        if not all(integer(0)[0](count) for count in counts.values()):
            raise ValueError("sifting cannot have counted what it states")
        sketch = state["sketch"]
        if not sketch:
            return
        plan = model["_machine"]["plan"]
        if sketch.keys() != {item.name for item in fields(Sketch)}:
            raise ValueError("its sketch is incomplete")
        m, problems = len(sketch["centres"]), plan["problems"]
        shapes = {
            "centres": (m, plan["features"]),
            "coefficients": (problems, m),
            "bias": (problems,),
            "reach": (problems,),
        }
        for name, shape in shapes.items():
            array = sketch[name]
            if not isinstance(array, np.ndarray) or array.dtype not in _SKETCH_TYPES[name]:
                raise ValueError(f"{name} of its sketch are not numbers")
            wrong = np.isnan(array) if name == "reach" else ~np.isfinite(array)
            if array.shape != shape or wrong.any():
                raise ValueError(f"{name} of its sketch are not {shape} numbers")
        if not integer(0)[0](sketch["inserted"]):
            raise ValueError("its sketch is of no model")

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.tally = Tally(**state["tally"])
        self.sketch = Sketch(**state["sketch"]) if state["sketch"] else None
        self._laid = None
