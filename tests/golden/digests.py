"""Digests of models: the same rows must give the same bits after a change that means no other.

    python tests/golden/digests.py                       compare with digests.json
    python tests/golden/digests.py --against PYTHON      ... with the package of another interpreter
    python tests/golden/digests.py --write               accept the models as they are now

A digest covers what a user sees of a model: support vectors, coefficients, decision values and the
counts of work; of a learner and of a labelling store, the questions; of a file, the bytes. Stored
digests are those of the instruction set ``baseline``, which every machine has, and of one compiler;
with another one, `--against` is the comparison to make.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import marginwise
from marginwise.active import ActiveLearner
from marginwise.invariance import ImageDeformer, VirtualSet

STORED = Path(__file__).with_name("digests.json")
MISSING = "a package is not installed"

RANDOM = np.random.RandomState(0)
# Multiples of 1/64, whose sums of products are exact: how NumPy and BLAS add up does not matter.
X = (RANDOM.standard_normal((240, 5)) * 64).round() / 64
X[RANDOM.random(X.shape) < 0.2] = 0.0
Y3 = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.4 * RANDOM.standard_normal(240), [0.2, 1.2])
Y2 = (Y3 == 1).astype(int)
WEIGHTS = RANDOM.randint(1, 4, 240) / 2
LISTS = sp.random(240, 300, density=0.03, format="csr", random_state=RANDOM)
LISTS.data = (LISTS.data * 64).round() / 64
ROWS = slice(200, 240)  # what is predicted

ESTIMATORS = {
    "OnlineSVC": {},
    "GapSVC": {"clean_every": 50, "max_idle": 10},
    "TrackingSVC": {"steps": 4},
    "ExactSVC": {},
    "ExactRampSVC": {},
    "KernelPerceptron": {"margin": 0.3},
}
KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto")
SELECTIONS = {
    "gradient": {"selection": "gradient", "pool_size": 10},
    "active": {"selection": "active", "pool_size": 10},
    "autoactive": {"selection": "autoactive"},
    "full": {"selection": "active", "pool_size": None},
    "two epochs": {"selection": "active", "pool_size": 5, "epochs": 2},
}
ONLINE = {
    "three epochs": {"epochs": 3},
    "in order": {"shuffle": False, "reprocess": 3},
    "gap": {"reprocess": "gap", "tol": 1e-4},
    "each": {"reprocess_when": "each", "delta_max": 0.5},
    "unfinished": {"finish_at_end": False},
    "every": {"finish_every": 37},
    "balanced": {"class_weight": "balanced", "C": 0.01},
    "hard margin": {"C": np.inf, "gamma": 20.0},
    "little cache": {"cache_size": 0.01},
    "two threads": {"n_jobs": 2},
}
OTHERS = {
    "GapSVC": {"ramp": {"loss": "ramp"}, "filter": {"loss": "filter", "record": True}},
    "TrackingSVC": {
        "algorithm 1": {"process": False, "average": False},
        "support": {"gradients": "support", "record": True},
    },
    "KernelPerceptron": {
        "averaged": {"average": True},
        "budget": {"budget": 20, "update": "pa"},
    },
}


def make(name: str, **given: Any) -> Any:
    """An estimator; parameters that it has by an earlier name, or not at all, are adapted."""
    kind = getattr(marginwise, name)
    known = inspect.signature(kind).parameters
    if "finish_at_end" in given and "finish_at_end" not in known:
        given["finish"] = given.pop("finish_at_end")
    given = {"C": 2.0, "gamma": 0.4, "random_state": 0, **given}
    return kind(**{key: value for key, value in given.items() if key in known})


def deformer(seed: int) -> ImageDeformer:
    key = (
        "random_state" if "random_state" in inspect.signature(ImageDeformer).parameters else "seed"
    )
    return ImageDeformer((8, 8), **{key: seed})


class Rows:
    """A source, in two stages."""

    classes = (0, 1, 2)
    stages = (100, 200)

    def __len__(self) -> int:
        return 200

    def read(self, ids: Any) -> tuple[Any, Any]:
        return X[ids], Y3[ids]


# -- models ----------------------------------------------------------------------------------------


def cases() -> dict[str, Callable[[], Any]]:
    """Each case makes a model, or the arrays to digest."""
    found: dict[str, Callable[[], Any]] = {}
    for name, own in ESTIMATORS.items():
        for kernel in KERNELS:
            rows = np.abs(X) if kernel == "tanimoto" else X + 0.125
            given = {**own, "kernel": kernel, "coef0": 0.5 if kernel == "poly" else 0.0}
            given |= {"gamma": 0.02} if kernel == "sigmoid" else {}
            for labels, y in (("binary", Y2), ("three", Y3)):
                found[f"{name}, {kernel}, {labels}"] = lambda n=name, g=given, r=rows, y=y: (
                    model := make(n, **g).fit(r[:200], y[:200]),
                    model.decision_function(r[ROWS]),
                )
        found |= {f"{name}, {key}": case for key, case in _ways(name, own).items()}
    for key, given in {**SELECTIONS, **ONLINE}.items():
        found[f"OnlineSVC, {key}"] = lambda g=given: make("OnlineSVC", **g).fit(X, Y3)
    for name in ("GapSVC", "TrackingSVC", "KernelPerceptron"):
        for key, given in {**SELECTIONS, **OTHERS[name]}.items():
            if set(given) <= set(inspect.signature(getattr(marginwise, name)).parameters):
                found[f"{name}, {key}"] = lambda n=name, g=given: make(n, **g).fit(X, Y3)
    from tests.golden.product import product_cases  # which needs this module

    return found | _exact() | _runs() | _others() | product_cases()


def _ways(name: str, own: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The ways by which rows may come."""
    classes = [0, 1, 2]

    def stream() -> Any:
        model = make(name, **own)
        for start in range(0, 200, 40):
            some = slice(start, start + 40)
            model.partial_fit(X[some], Y3[some], classes=classes, sample_weight=WEIGHTS[some])
        return model

    def one_by_one() -> Any:
        model = make(name, **own).partial_fit(X[:60], Y3[:60], classes=classes)
        for row in range(60, 100):
            model.learn_one(X[row], Y3[row])
        return model.learn_many(X[100:180], Y3[100:180])

    def far() -> Any:
        """A row that single precision cannot place."""
        rows = X[:120].copy()
        rows[100] *= 1e3
        return make(name, **own).partial_fit(rows, Y3[:120], classes=classes)

    return {
        "lists": lambda: make(name, **own, kernel="linear").fit(LISTS[:200] * 3, Y3[:200]),
        "precomputed": lambda: make(name, **own, kernel="precomputed").fit(X @ X.T + 1, Y2),
        "callable": lambda: make(name, **own, kernel=lambda A, B: (A @ B.T + 1) ** 2).fit(X, Y2),
        "weights": lambda: make(name, **own).fit(X, Y2, sample_weight=WEIGHTS),
        "scale": lambda: make(name, **own, kernel="linear", C=1e-11).fit(X * 1e6, Y2),
        "stream": stream,
        "one by one": one_by_one,
        "far": far,
    }


def _exact() -> dict[str, Callable[[], Any]]:
    def forgetful(**given: Any) -> Any:
        model = make("ExactSVC", **given).fit(X[:120], Y3[:120])
        model.forget(range(0, 60, 2)).partial_fit(X[120:160], Y3[120:160])
        return model.set_C(7.0)

    def left_out() -> Any:
        found = make("ExactSVC").fit(X[:80], Y3[:80]).leave_one_out()
        return found.decision, found.ids

    return {
        "ExactSVC, forgetful": forgetful,
        "ExactSVC, balanced": lambda: forgetful(class_weight="balanced", record=True),
        "ExactSVC, window": lambda: make("ExactSVC", window=60).fit(X, Y2),
        "ExactSVC, oldest": lambda: make("ExactSVC", window=60, evict="oldest").fit(X, Y3),
        "ExactSVC, left out": left_out,
        "ExactOneClassSVM, nu": lambda: make("ExactOneClassSVM", nu=0.3).fit(X),
        "ExactOneClassSVM, forgetful": lambda: (
            make("ExactOneClassSVM", nu=0.2, window=150).fit(X).forget([100, 120, 140])
        ),
    }


def _runs() -> dict[str, Callable[[], Any]]:
    def resumed() -> Any:
        """A run that is stopped by its callback after one chunk, and continued from its file."""
        with tempfile.TemporaryDirectory() as folder:
            given = {"checkpoint": Path(folder, "run.mwz"), "checkpoint_minutes": 0.0}
            make("OnlineSVC").learn_from(Rows(), **given, callback=lambda *_: True)
            return make("OnlineSVC").learn_from(Rows(), **given)

    class Plain(Rows):
        stages = (200,)

    return {
        "run": lambda: make("OnlineSVC", epochs=2).learn_from(Plain()),
        "run, active": lambda: make("OnlineSVC", **SELECTIONS["active"]).learn_from(Plain()),
        "run, stages": lambda: make("OnlineSVC", finish_every=30).learn_from(Rows()),
        "run, stages, active": lambda: make("GapSVC", **SELECTIONS["active"]).learn_from(Rows()),
        "run, sifted": lambda: make("OnlineSVC", epochs=2).learn_from(Rows(), sift=0.05),
        "run, sifted, active": lambda: make("OnlineSVC", **SELECTIONS["autoactive"]).learn_from(
            Rows(), sift=0.0
        ),
        "run, resumed": resumed,
    }


def _others() -> dict[str, Callable[[], Any]]:
    def asked(strategy: str) -> Any:
        learner = ActiveLearner(make("OnlineSVC"), X, strategy=strategy, stop=None, random_state=0)
        learner.teach([0, 1, 2, 3], Y2[:4])
        for _ in range(12):
            rows = learner.ask(2)
            learner.teach(rows, Y2[rows])
        return learner.estimator_, learner.decision_values()

    def deformed() -> Any:
        images = np.clip(np.random.RandomState(1).random((6, 64)), 0, 1).astype(np.float32)
        y = np.arange(6) % 2
        source = VirtualSet(images, y, deformer(3), variants=4)
        return deformer(3).deform(images, variants=3), *source.read(np.arange(len(source)))

    return {
        "asked, active": lambda: asked("active"),
        "asked, near_boundary": lambda: asked("near_boundary"),
        "deformed": deformed,
    }


# -- digests ---------------------------------------------------------------------------------------


def digest(made: Any) -> str:
    """A digest of what a user sees of models, and of arrays."""
    total = hashlib.sha256()
    for part in made if isinstance(made, tuple) else (made,):
        arrays = seen(part) if hasattr(part, "support_") else [part]
        for array in arrays:
            values = np.ascontiguousarray(array)
            total.update(repr((values.dtype.str, values.shape)).encode())
            total.update(values.tobytes())
    return total.hexdigest()


def seen(model: Any) -> list[Any]:
    work = ("process", "reprocess", "inserted", "removed", "sampled", "chosen")
    arrays = [model.support_, model.dual_coef_, model.intercept_, model.ids_]
    arrays += [np.atleast_1d(model.dual_objective()), [model.stats_[name] for name in work]]
    if model.kernel not in ("precomputed",):
        rows = LISTS[ROWS] * 3 if model.n_features_in_ == LISTS.shape[1] else X[ROWS]
        arrays.append(model.decision_function(rows))
    for name in ("normalised_gap_", "bound_", "history_", "path_"):
        try:
            value = getattr(model, name)
        except AttributeError:
            continue
        arrays += list(value.values())[:2] if isinstance(value, dict) else [value]
    return arrays


def digests() -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {}
        for name, case in cases().items():
            try:
                found[name] = digest(case())
            except ValueError as error:  # refused: the message is the result
                found[name] = f"ValueError: {error}"
            except ImportError:
                found[name] = MISSING
    return found


def digests_of(python: str, cpu: str) -> dict[str, str]:
    """Digests that another process finds, with an instruction set."""
    done = subprocess.run(
        [python, str(Path(__file__).resolve()), "--print"],
        env={**os.environ, "MARGINWISE_CPU": cpu},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def compiler() -> str:
    """The compiler that builds the package here, as far as it is known."""
    command = [os.environ.get("CXX", "c++"), "-dumpfullversion"]
    try:
        version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{platform.machine()}, {version}"


def stored() -> tuple[str, dict[str, str]]:
    """The compiler and the digests of digests.json."""
    content = json.loads(STORED.read_text(encoding="utf-8"))
    return content["compiler"], content["models"]


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Names of the models that are not the same, among those that both could make."""
    pairs = {name: (expected.get(name), found.get(name)) for name in expected | found}
    return [name for name, (a, b) in pairs.items() if a != b and MISSING not in (a, b)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="PYTHON", help="interpreter with another build")
    parser.add_argument("--cpu", default="baseline", help="instruction set of --against")
    parser.add_argument("--write", action="store_true", help=f"write {STORED.name}")
    parser.add_argument("--print", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.print:
        json.dump(digests(), sys.stdout)
        return 0
    found = digests_of(sys.executable, options.cpu)
    if options.write:
        content = {"compiler": compiler(), "models": found}
        STORED.write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")
        return 0
    expected = digests_of(options.against, options.cpu) if options.against else stored()[1]
    differ = differences(expected, found)
    print(f"{len(found)} models, {len(differ)} differ", *differ, sep="\n  ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.exit(main())
