"""Sifting: finding, among many rows, those worth learning, without asking all members about each.

Rows come in chunks, and are judged by the model as it is when a chunk begins. A *sketch*, a sum
over a few of the members that was fitted to the model's own decision values, shows most rows to be
far from a class's margin. Only for the others is the decision value of that class computed, over
the members that the class holds. Rows are then chosen by the rules of selection, and learned
exactly.

That is an approximation, twice: the sketch may call a row far that is not, and values are as of the
beginning of the chunk. How often the sketch errs is measured all the time: some of the rows that it
calls far are looked at nevertheless.
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

CHUNK = 16384  # rows that are judged by one state of the model
LEEWAY = 0.1  # the margin is taken to be wider by this, for the model moves while it learns a chunk

WORTH_A_SKETCH = 20_000  # members; fewer are quicker asked all
CENTRES = 4096  # of a sketch, at most
MEMBERS_A_CENTRE = 10
RIDGE = 1e-2
STALE = 0.25  # a sketch is made again when this part of the members was inserted since
HELD_OUT = 8  # one of so many rows tests the sketch that the others made
AUDITED = 128  # one of so many rows is looked at whatever the sketch says


@dataclass
class Sketch:
    """A rough model of the model."""

    centres: NDArray[Any]  # their features
    coefficients: Float  # problems x centres
    bias: Float
    reach: Float  # of each problem: a row whose score is beyond it is called far
    inserted: int  # of the model, when the sketch was made


_SKETCH_TYPES: dict[str, tuple[type, ...]] = {
    "centres": (np.float32, np.float64),
    **dict.fromkeys(("coefficients", "bias", "reach"), (np.float64,)),
}


@dataclass
class Tally:
    """What sifting has done so far: counts of rows, or of pairs of a row and a problem."""

    rows: int = 0
    pairs: int = 0
    asked: int = 0  # pairs whose decision value was computed
    inside: int = 0  # ... of which lie within the margin
    wanted: int = 0  # pairs chosen to be learned
    audited: int = 0  # pairs that the sketch calls far and that were looked at nevertheless
    wrong: int = 0  # ... of which lie within the margin
    sketches: int = 0

    @property
    def lost(self) -> float:
        """The share of the pairs within the margin that the sketch has hidden, estimated."""
        hidden = self.wrong / self.audited * (self.pairs - self.asked) if self.audited else 0.0
        return hidden / (hidden + self.inside) if hidden else 0.0


def widths(engine: Engine) -> Float:
    """Return by how much each margin is wider; minus infinity where this is not known yet.

    It is δ, or the width of the interval that the bias lies in while no member is free.
    """
    native = engine.native
    return np.where(native.judges(), np.abs(native.delta()), -np.inf)


def _margin(engine: Engine) -> Float:
    """Return, of each problem, the score below which a row lies within the margin."""
    return 1.0 + widths(engine) / 2


def choose_centres(members: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the places of the members that are the centres of a sketch."""
    count = min(CENTRES, members // MEMBERS_A_CENTRE)
    return np.sort(rng.choice(members, count, replace=False))


@dataclass
class Sieve:
    """Chooses rows, chunk by chunk."""

    rule: str  # of selection
    pool_size: int
    loss: float  # the share of rows within the margin that a sketch may hide; 0: make no sketch
    seed: int
    tally: Tally = field(default_factory=Tally)
    sketch: Sketch | None = None
    _laid: Any = None  # the centres of the sketch in the form of the core,
    _laid_double: bool = False  # ... which depends on its precision

    def choose(self, engine: Engine, batch: Batch, signs: Float) -> Flags:
        """Tell which problems should learn which rows of a chunk.

        Parameters
        ----------
        engine
            The model.
        batch
            The rows in its form.
        signs
            Their labels as +1 and -1, a column for each problem, 0 where they have no part in it.
        """
        scores = self._scores(engine, batch, signs)
        margin = _margin(engine)
        waiting = ~np.isfinite(margin)  # problems that cannot judge learn all
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
        """Return the scores of all pairs, infinite for those that are far."""
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
        scores[audited] = np.inf  # looking must not change what is learned
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
        """Cut the rows of a chunk into pools; the last may be incomplete."""
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
        """Fit a sketch to decision values of a chunk, and set its reach by rows held out."""
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
            Their labels as +1 and -1, 0 where they have no part in a problem.
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
        """Return the score below which all but the accepted share of rows inside would be found."""
        if len(rough) < 10 or not np.isfinite(margin):
            return np.inf
        return max(float(np.quantile(rough, 1.0 - self.loss)), margin)

    # -- state ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that is needed to continue as if never stopped."""
        sketch = {} if self.sketch is None else vars(self.sketch)
        return {"loss": self.loss, "tally": asdict(self.tally), "sketch": dict(sketch)}

    @staticmethod
    def check(state: Any, model: dict[str, Any]) -> None:
        """Raise ValueError unless a state fits a model's."""
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
