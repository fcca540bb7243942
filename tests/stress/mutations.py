"""Mutations: files whose values were changed and whose checksum was computed again.

Invariant: loading raises ModelFileError, or returns a model that predicts finite values and learns
further rows (or refuses them with a ValueError) within the time limit. A checkpoint may also be
refused as that of another run, and a pipeline may refuse all rows. Nothing else is raised, nothing
hangs or crashes, and memory stays bounded.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import resource
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import marginwise
from marginwise.active import ActiveLearner, MarginExhausted
from marginwise.model_io import ModelFileError
from tests.stress import pipelines
from tests.stress.harness import Options, Outcome
from tests.stress.subjects import ESTIMATORS, learn, make, rows
from tests.support import Rows

KINDS = (*ESTIMATORS, "ActiveLearner", "Checkpoint", "Pipeline")
TOTAL = 10_000 * len(KINDS)
BATCH = 1500
LIMIT = 30.0
SLOW = 5.0  # seconds for a file of a few kilobytes
MOST_MEMORY = 2**31  # bytes
VARIANTS = 4
ANOTHER_RUN = ("cannot be continued", "y has unknown labels")
POOL = np.random.default_rng(8).normal(size=(30, 3))

NUMBERS = [0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, -(2**62)]
NUMBERS += [0.5, -0.5, 1e-300, 5e-324, 1e-12, 1e12, 1e25, 1e38, 1e39, 1e300, -1e300]
OTHERS = [None, True, False, "", "x", "rbf", "linear", "precomputed", [], {}, [1], "\ud800", "0"]
LETHAL = [float("nan"), float("inf"), -float("inf")]


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    kind = KINDS[case % len(KINDS)]
    variant = int(rng.integers(pipelines.VARIANTS if kind == "Pipeline" else VARIANTS))
    content = mutated(original(kind, variant), rng)
    with tempfile.TemporaryDirectory(dir=_memory()) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "file.mwz")
        path.write_bytes(content)
        outcome = Outcome()
        before, began = _peak(), time.monotonic()
        try:
            _use(kind, variant, path, outcome)
        except ModelFileError:
            outcome.count(f"{kind} refused")
        except ValueError as error:
            if kind != "Checkpoint" or not any(said in str(error) for said in ANOTHER_RUN):
                raise
            outcome.count("Checkpoint of another run")
    seconds, grown = time.monotonic() - began, _peak() - before
    if seconds > SLOW:
        outcome.violate(f"{kind}: {seconds:.1f} s for {len(content)} bytes")
    if grown > MOST_MEMORY:
        outcome.violate(f"{kind}: {grown / 2**20:.0f} MB for {len(content)} bytes")
    return outcome


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# -- using a file ------------------------------------------------------------------------------


def _use(kind: str, variant: int, path: Path, outcome: Outcome) -> None:
    """Load what a file holds, predict with it and learn more."""
    if kind == "Pipeline":
        _use_pipeline(variant, path, outcome)
        return
    if kind == "Checkpoint":
        model, source = _unfinished()
        model.learn_from(source, checkpoint=path, checkpoint_minutes=1e6, sift=0.05)
        _require_finite(model.decision_function(source.X), kind, outcome)
    elif kind == "ActiveLearner":
        learner = ActiveLearner.load(path, POOL)
        row = learner.ask()
        if learner.has_model_:
            _require_finite(learner.decision_values(), kind, outcome)
        _more(kind, lambda: learner.teach(row, learner.classes_[0]), outcome)
    else:
        model = marginwise.load(path)
        if not hasattr(model, "n_features_in_"):
            outcome.count(f"{kind} loaded")
            return
        n = min(int(model.n_features_in_), 10**6)
        X = np.random.default_rng(9).normal(size=(6, n))
        _require_finite(model.decision_function(X), kind, outcome)
        labels = None if kind == "ExactOneClassSVM" else model.classes_[np.arange(6) % 2]
        _more(kind, lambda: model.partial_fit(X, labels), outcome)
        _require_finite(model.decision_function(X), kind, outcome)
    outcome.count(f"{kind} loaded")


def _use_pipeline(variant: int, path: Path, outcome: Outcome) -> None:
    """Load a pipeline, predict with it, and learn more with its last step."""
    model = marginwise.load(path)
    params = model.get_params()
    model.set_params(**{name: None for name in params if name.endswith("n_jobs")})
    X = pipelines.pipeline(variant)[1]
    try:
        values = model.decision_function(X)
        Z = model[:-1].transform(X)
    except ValueError:
        outcome.count("Pipeline refuses rows")
        return
    _require_finite(values, "Pipeline", outcome)
    labels = model[-1].classes_[np.arange(pipelines.N) % 2]
    _more("Pipeline", lambda: model[-1].partial_fit(Z, labels), outcome)
    outcome.count("Pipeline loaded")


def _require_finite(values: Any, kind: str, outcome: Outcome) -> None:
    if not np.isfinite(values).all():
        outcome.violate(f"{kind}: predicts values that are not finite")


def _more(kind: str, act: Callable[[], Any], outcome: Outcome) -> None:
    try:
        act()
    except ValueError:
        outcome.count(f"{kind} learns no more")


# -- originals ---------------------------------------------------------------------------------


def _unfinished() -> tuple[Any, Rows]:
    X, y = rows(np.random.default_rng(10), 90)
    return make("OnlineSVC", C=5.0, selection="active", pool_size=5), Rows(X, y, [30, 60, 90])


@cache
def original(kind: str, variant: int) -> bytes:
    """The content of a good file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.mwz")
        if kind == "Checkpoint":
            _write_checkpoint(path, 1 + variant % 2)
        elif kind == "ActiveLearner":
            _learner(variant).save(path)
        elif kind == "Pipeline":
            marginwise.save(pipelines.pipeline(variant)[0], path)
        else:
            marginwise.save(_model(kind, variant), path)
        content = path.read_bytes()
        try:
            _use(kind, variant, path, Outcome())
        except ValueError as error:
            raise AssertionError(f"a good file of {kind} is refused: {error}") from error
    return content


def _model(kind: str, variant: int) -> Any:
    """Two classes or three, dense or sparse, with records, a window or weights."""
    classes = 2 + variant % 2
    X, y = rows(np.random.default_rng(variant), 40, classes)
    model = make(kind, C=2.0, nu=0.3, record=variant == 1, class_weight={0: 1.5, 1: 0.5})
    if variant == 2:
        X = sp.csr_array(np.hstack([X * (np.abs(X) > 1), np.zeros((40, 60))]))
    if variant == 3 and "window" in model.get_params():
        model.set_params(window=20)
    if variant == 3 and "average" in model.get_params():
        model.set_params(average=True)
    if variant == 3 and "loss" in model.get_params():
        model.set_params(loss="filter", ramp=0.0)
    learn(model, X, y, classes)
    return model


def _learner(variant: int) -> ActiveLearner:
    classes = None if variant % 2 else [0, 1]
    y = (POOL[:, 0] > 0).astype(int)
    estimator = make("OnlineSVC", C=2.0)
    strategy = ("active", "near_boundary", "gradient", "random")[variant]
    learner = ActiveLearner(
        estimator,
        POOL,
        strategy=strategy,
        classes=classes,
        stop=MarginExhausted(),
        y_pool=y if variant == 2 else None,
        random_state=0,
    )
    learner.teach(np.arange(6), y[:6])
    for _ in range(3):
        row = learner.ask()
        learner.teach(row, y[row])
    learner.skip([learner.ask()])
    return learner


def _write_checkpoint(path: Path, chunks: int) -> None:
    model, source = _unfinished()

    class StoppedError(Exception):
        pass

    def stop(_: Any, moment: Any) -> None:
        if moment.examples >= 30 * chunks:
            raise StoppedError

    with contextlib.suppress(StoppedError):
        model.learn_from(source, checkpoint=path, checkpoint_minutes=0, callback=stop, sift=0.05)


# -- mutating ----------------------------------------------------------------------------------


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one to three values of a file and sign it again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts.pop("model.json"))
    arrays = {name: np.load(io.BytesIO(data)) for name, data in parts.items()}
    for _ in range(int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        if arrays and rng.random() < 0.6:
            _mutate_arrays(arrays, rng)
        else:
            _mutate_document(document, rng)
    return signed(document, {name: _npy(array) for name, array in arrays.items()})


def signed(document: dict[str, Any], parts: dict[str, bytes]) -> bytes:
    """Write an archive with the checksum that its content has, as `model_io` computes it."""
    said = {key: value for key, value in document.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(parts):
        digest.update(f"\n{name}\n".encode())
        digest.update(parts[name])
    if "sha256" in document:
        document["sha256"] = digest.hexdigest()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {"model.json": json.dumps(document).encode(), **parts}.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


def _npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array), version=(1, 0))
    return out.getvalue()


def _mutate_document(document: dict[str, Any], rng: np.random.Generator) -> None:
    places = _places(document["state"])
    holder, key = places[int(rng.integers(len(places)))]
    way, old = rng.random(), holder[key]
    if type(old) in (int, float) and way < 0.8:  # most are of the right type, to get far
        choices: list[Any] = [x for x in NUMBERS if type(x) is type(old)]
        new = choices[int(rng.integers(len(choices)))]
        holder[key] = new if way < 0.6 else _nudged(old, rng)
    elif way < 0.85:
        choices = NUMBERS + OTHERS + LETHAL
        holder[key] = choices[int(rng.integers(len(choices)))]
    elif way < 0.95:
        other, place = places[int(rng.integers(len(places)))]
        if not isinstance(other[place], dict | list):
            holder[key] = other[place]
    elif way < 0.98 or isinstance(holder, list):
        del holder[key]
    else:
        holder["x"] = old


def _places(value: Any) -> list[tuple[Any, Any]]:
    """All places of a JSON document that can be written to."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], dict | list):
            found += _places(value[key])
    return found


def _nudged(number: Any, rng: np.random.Generator) -> Any:
    if isinstance(number, int) and rng.random() < 0.7:
        return int(number) + int(rng.integers(-2, 3))
    return number * float(rng.choice([1 + 1e-9, 0.9, 1.1, -1.0, 1e3, 1e6, 1e-6]))


def _mutate_arrays(arrays: dict[str, Any], rng: np.random.Generator) -> None:
    name = sorted(arrays)[int(rng.integers(len(arrays)))]
    way = rng.random()
    if way < 0.85:
        arrays[name] = _with_entry(arrays[name], rng)
    elif way < 0.88:
        other = sorted(arrays)[int(rng.integers(len(arrays)))]
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif way < 0.9:
        del arrays[name]
    else:
        arrays[name] = _reshaped(arrays[name], rng)


def _with_entry(array: Any, rng: np.random.Generator) -> Any:
    """Change one entry, or several, to a value that the type can hold."""
    if array.size == 0 or array.dtype.kind not in "fiub":
        return array
    array = array.copy()
    entries = array.reshape(-1)
    at = rng.integers(array.size, size=1 if rng.random() < 0.7 else max(1, array.size // 3))
    if rng.random() < 0.3:
        entries[at] = entries[rng.integers(array.size, size=len(at))]
    elif array.dtype.kind == "f":
        values = [float(x) for x in NUMBERS] + LETHAL
        some = values[int(rng.integers(len(values)))]
        with np.errstate(all="ignore"):
            entries[at] = some if rng.random() < 0.6 else entries[at] * _nudged(1.0, rng)
    else:
        numbers = [x for x in NUMBERS if isinstance(x, int)]
        some = numbers[int(rng.integers(len(numbers)))]
        if array.dtype.kind == "b":
            entries[at] ^= True
        elif np.iinfo(array.dtype).min <= some <= np.iinfo(array.dtype).max:
            entries[at] = some
        else:
            entries[at] += 1
    return array


def _reshaped(array: Any, rng: np.random.Generator) -> Any:
    """Change type or shape."""
    ways: list[Callable[[], Any]] = [
        lambda: array.T,
        lambda: array[:-1],
        lambda: array[:0],
        lambda: np.concatenate([array, array]),
        lambda: array[::-1],
        lambda: array.reshape(-1),
        lambda: array.reshape(1, -1),
        lambda: array.astype(str(rng.choice(["f4", "f8", "i8", "u1", "i4", "b1", "f2"]))),
        lambda: array.astype("U5"),
    ]
    with np.errstate(all="ignore"):
        return ways[int(rng.integers(len(ways)))]()
