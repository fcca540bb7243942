"""One model in several threads, and calls that happen whole or not at all."""

from __future__ import annotations

import contextlib
import gc
import itertools
import pickle
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import marginwise
from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
)
from marginwise._training.loop import Trainer
from marginwise.active import ActiveLearner
from marginwise.invariance import ImageDeformer, VirtualSet
from tests.support import Rows, assert_untouched, blobs, differences

KINDS = [
    OnlineSVC,
    GapSVC,
    TrackingSVC,
    ExactRampSVC,
    KernelPerceptron,
    ExactSVC,
    ExactOneClassSVM,
]
X, Y = blobs(600, 0, 3)


def learn(model: Any, rows: Any, **options: Any) -> Any:
    if isinstance(model, ExactOneClassSVM):
        return model.partial_fit(X[rows], **options)
    return model.partial_fit(X[rows], Y[rows], classes=[0, 1, 2], **options)


def started(kind: Any, rows: int = 60, **params: Any) -> Any:
    if "random_state" in kind().get_params():
        params = {"random_state": 0, **params}
    return learn(kind(**{"gamma": 0.5, **params}), slice(0, rows))


class Together:
    """Functions called over and over by a thread each; what one raises is raised at the end."""

    def __init__(self, *functions: Callable[[], None]) -> None:
        self._functions = functions
        self._stop = threading.Event()
        self._errors: list[BaseException] = []

    def _repeat(self, function: Callable[[], None]) -> None:
        try:
            while not self._stop.is_set():
                function()
        except BaseException as error:
            self._errors.append(error)
            self._stop.set()

    def run(self, seconds: float) -> None:
        threads = [threading.Thread(target=self._repeat, args=(f,)) for f in self._functions]
        for thread in threads:
            thread.start()
        self._stop.wait(seconds)
        self._stop.set()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), "threads wait for each other"
        if self._errors:
            raise self._errors[0]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [5, 100], ids=["few rows", "many rows"])
@pytest.mark.parametrize("kind", KINDS)
def test_readers_beside_a_learner(kind: Any, rows: int, tmp_path: Path) -> None:
    """Values are finite and every copy is a model, whatever the learner is doing."""
    model, rng = started(kind), np.random.default_rng(0)

    def train() -> None:
        if len(model.ids_) > 300:
            model.fit(X[:60], Y[:60])
        learn(model, rng.integers(len(X), size=rows))

    def predict() -> None:
        assert np.isfinite(model.decision_function(X[:20])).all()
        assert len(model.predict(X[:3])) == 3

    def look() -> None:
        assert len(model.support_) > 0
        assert model.n_support_.sum() > 0
        assert np.isfinite(model.intercept_).all()
        assert model.stats_["members"] >= 0

    def copy() -> None:
        twin = pickle.loads(pickle.dumps(model))
        twin._engine.native.check(1e-3)
        marginwise.save(model, tmp_path / "model.mwz")
        clone(model).set_params(cache_size=10)

    Together(train, predict, look, copy).run(0.4)
    model._engine.native.check(1e-3)


@pytest.mark.parametrize("kind", [OnlineSVC, ExactSVC])
def test_learners_wait_for_each_other(kind: Any) -> None:
    model = started(kind)
    calls = [0, 0]

    def train(which: int) -> None:
        calls[which] += 1
        learn(model, slice(which * 50, which * 50 + 40))
        if len(model.ids_) > 200 and isinstance(model, ExactSVC):
            with contextlib.suppress(KeyError):  # the other thread was first
                model.forget(model.ids_[:100])

    Together(lambda: train(0), lambda: train(1)).run(0.3)
    model._engine.native.check(1e-3)
    assert model._engine.native.next_id == 60 + 40 * sum(calls), "rows of one call were lost"


def test_a_reader_has_the_old_model_while_a_new_one_is_fitted() -> None:
    """It does not wait, and sees labels and values of one model."""
    model = OnlineSVC(gamma=0.5).fit(X, Y)
    names = np.array(["a", "b", "c"])

    def fit() -> None:
        model.fit(X, names[Y] if model.classes_[0] == 0 else Y)

    def predict() -> None:
        found = set(model.predict(X[:50]).tolist())
        assert found <= {0, 1, 2} or found <= {"a", "b", "c"}

    Together(fit, predict).run(0.5)


@pytest.mark.slow
def test_virtual_sets_and_learners_of_labels_in_threads() -> None:
    rng = np.random.default_rng(0)
    images = rng.random((30, 36))
    source = VirtualSet(images, np.arange(30) % 2, ImageDeformer((6, 6)), 20, cache_size=0.01)
    expected, _ = VirtualSet(images, np.arange(30) % 2, ImageDeformer((6, 6)), 20).read(
        np.arange(600)
    )

    seeds = itertools.count()

    def read() -> None:
        ids = np.random.default_rng(next(seeds)).integers(600, size=40)
        assert np.array_equal(source.read(ids)[0], expected[ids]), "images of other ids"

    Together(read, read, read).run(0.4)
    learner = ActiveLearner(OnlineSVC(gamma=0.5), X, classes=[0, 1, 2], random_state=0)

    def teach() -> None:
        if learner.n_unseen_ > 50:
            row = learner.sample_unseen(1)
            if learner.counts_["taught"] < 400:
                _teach(learner, row)

    Together(teach, teach, lambda: _ask(learner), lambda: _check_copy(learner)).run(0.5)
    taught = [step["row"] for step in learner.history_]
    assert len(set(taught)) == len(taught), "a row was taught twice"


def _teach(learner: ActiveLearner, row: np.ndarray) -> None:
    with contextlib.suppress(ValueError):  # the other thread was first
        learner.teach(row, Y[row])


def _ask(learner: ActiveLearner) -> None:
    learner.ask()
    learner.should_stop()


def _check_copy(learner: ActiveLearner) -> None:
    copy = pickle.loads(pickle.dumps(learner))
    assert len(copy.history_) == copy.counts_["taught"]


# -- kernels that are functions -------------------------------------------------------------------


class Kernel:
    """A kernel that may use its own model, and may hold it."""

    def __init__(self) -> None:
        self.model: Any = None
        self.use: Callable[[Any], Any] | None = None

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        if self.use is not None:
            self.use(self.model)
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict(X[:2]),
        lambda model: model.partial_fit(X[:2], Y[:2]),
        lambda model: model.support_,
        pickle.dumps,
    ],
    ids=["predict", "partial_fit", "support_", "pickle"],
)
@pytest.mark.parametrize("call", ["partial_fit", "fit", "predict"])
@pytest.mark.parametrize("kind", [OnlineSVC, GapSVC, ExactSVC])
def test_a_kernel_that_uses_its_own_model_is_refused(kind: Any, call: str, use: Any) -> None:
    kernel = Kernel()
    model = learn(kind(kernel=kernel), slice(0, 40))
    before = model.__getstate__()
    kernel.model, kernel.use = model, use
    arguments = (X[40:60],) if call == "predict" else (X[40:60], Y[40:60])
    with pytest.raises(RuntimeError, match="kernel function"):
        getattr(model, call)(*arguments)
    kernel.use = kernel.model = None
    assert_untouched(before, model, "a kernel that uses its own model")


def test_a_kernel_that_holds_its_model_is_collected() -> None:
    model = OnlineSVC(kernel=Kernel())
    model.kernel.model = model
    model.fit(X[:40], Y[:40])
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None, "the model and its kernel keep each other alive"


# -- all or nothing -------------------------------------------------------------------------------


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line that the package runs in this thread."""

    def __init__(self, at: int) -> None:
        self.at, self.lines = at, 0

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        if "marginwise" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                raise KeyboardInterrupt
        return self._trace

    def __enter__(self) -> Interrupt:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


CALLS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda model: model.fit(X[:80], Y[:80]),
    "refit to other classes": lambda model: model.fit(X[:80], np.array(list("abc"))[Y[:80]]),
    "a few rows": lambda model: learn(model, slice(60, 70)),
    "many rows": lambda model: learn(model, slice(60, 160)),
    "own ids": lambda model: learn(model, slice(60, 70), ids=np.arange(1000, 1010)),
    "set_params": lambda model: model.set_params(C=3.0, gamma=0.7),
    "learn_one": lambda model: model.learn_one(X[70], 1),
    "finish": lambda model: model.finish(),
    "forget": lambda model: model.forget(model.ids_[3:9]),
    "set_C": lambda model: model.set_C(5.0),
}
CLASSES_ONLY = {"refit to other classes", "learn_one", "finish", "set_C"}


def cases() -> Iterator[Any]:
    for kind in KINDS:
        for name in CALLS:
            if kind is ExactOneClassSVM and name in CLASSES_ONLY:
                continue
            if name == "finish" and not callable(getattr(kind(), "finish", None)):
                continue
            if name in ("forget", "set_C") and not hasattr(kind, name):
                continue
            yield pytest.param(kind, name, id=f"{kind.__name__} {name}")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), list(cases()))
def test_an_interrupt_leaves_the_state_before_or_after(kind: Any, name: str) -> None:
    """At lines spread over the whole call: what it leaves is no mixture."""
    call = CALLS[name]
    start = pickle.dumps(started(kind, **({"record": True} if hasattr(kind(), "record") else {})))
    after = pickle.loads(start)
    with Interrupt(0) as trace:
        call(after)
    for at in np.unique(np.linspace(1, trace.lines, 25).astype(int)):
        model = pickle.loads(start)
        before = timeless(model)
        with pytest.raises(KeyboardInterrupt), Interrupt(int(at)):
            call(model)
        found = [differences(state, timeless(model)) for state in (before, timeless(after))]
        assert [] in found, f"a mixture after line {at} of {trace.lines}: {found}"
        model._engine.native.check(1e-3)
        learn(model, slice(200, 210)) if name != "refit to other classes" else model.fit(X, Y)


def timeless(model: Any) -> dict[str, Any]:
    state = model.__getstate__()
    state["_machine"].pop("seconds", None)
    return state


@pytest.mark.parametrize("kind", KINDS)
def test_a_lack_of_memory_leaves_the_model_as_it_was(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = started(kind)
    before = model.__getstate__()
    learned = Trainer.learn

    def fail(self: Trainer, *args: Any) -> None:
        learned(self, *args)
        raise MemoryError

    monkeypatch.setattr(Trainer, "learn", fail)
    with pytest.raises(MemoryError):
        learn(model, slice(60, 200))
    assert_untouched(before, model, "MemoryError")


def test_a_callback_may_end_a_run_and_keep_what_was_learned() -> None:
    seen: list[int] = []

    def callback(_: Any, moment: Any) -> bool:
        seen.append(moment.examples)
        return moment.examples >= 400

    model = OnlineSVC(gamma=0.5, random_state=0).learn_from(
        Rows(X, Y, (200, 400, 600)), callback=callback
    )
    assert seen == [200, 400]
    assert model.ids_.max() < 400
    assert model.score(X, Y) > 0.5


# -- ids and sparse input -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_default_ids_never_collide_with_given_ones(kind: Any) -> None:
    model = kind(gamma=0.5)
    learn(model, slice(0, 100), ids=np.arange(100, 200))
    learn(model, slice(100, 200))
    assert model._engine.native.next_id == 300
    assert ((model.ids_ >= 100) & (model.ids_ < 300)).all()
    if kind in (GapSVC, ExactSVC):
        assert (model.ids_ >= 200).any(), "rows without ids were taken for those with ids"


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.bsr_matrix])
@pytest.mark.parametrize("index", [700, -1])
def test_sparse_indices_out_of_range_are_refused(form: Any, index: int) -> None:
    good = sp.random(40, 5, density=0.5, format="csr", random_state=0)
    model = OnlineSVC(gamma=0.5).fit(good, np.arange(40) % 2)
    bad = form(good) if form is not sp.bsr_matrix else sp.bsr_matrix(good, blocksize=(1, 1))
    bad.indices = bad.indices.copy()
    bad.indices[-1] = index
    for call in (
        lambda: model.predict(bad),
        lambda: model.fit(bad, np.arange(40) % 2),
        lambda: model.partial_fit(bad, np.arange(40) % 2),
        lambda: ActiveLearner(OnlineSVC(), bad),
    ):
        with pytest.raises(ValueError, match=r"not a valid (CSR|CSC|BSR)"):
            call()
    broken = good.copy()
    broken.indptr = broken.indptr[::-1].copy()
    with pytest.raises(ValueError, match="indptr"):
        model.predict(broken)


def test_learn_one_refuses_nan_and_keeps_its_precision() -> None:
    model = OnlineSVC(gamma=0.5).fit(X, Y)
    before = model.__getstate__()
    row = X[0].copy()
    row[1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.learn_one(row, 0)
    assert_untouched(before, model, "NaN")
    assert model.stats_["precision"] == "single"


def test_kernel_values_beyond_single_precision_are_refused() -> None:
    model = OnlineSVC(kernel=lambda A, B: 1e39 * (A @ B.T))
    with pytest.raises(ValueError, match="single precision"):
        model.fit(X[:20], Y[:20])


@pytest.mark.slow
def test_many_classes_take_memory_in_proportion() -> None:
    """500 MB of address space for each of 300 classes would be 150 GB."""
    resource = pytest.importorskip("resource")
    rows = np.random.default_rng(0).normal(size=(600, 4))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    OnlineSVC(gamma=0.5).fit(rows, np.arange(600) % 300)
    after = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    assert after - used < 2 << 30


@pytest.mark.slow
def test_more_threads_than_can_be_started() -> None:
    """Fewer will do: the model is the same."""
    resource = pytest.importorskip("resource")
    code = f"""
import resource, numpy as np
from marginwise import OnlineSVC
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4)); y = (X[:, 0] > 0).astype(int)
alone = OnlineSVC(gamma=0.5, random_state=0, n_jobs=1).fit(X, y).decision_function(X)
used = int(open("/proc/self/statm").read().split()[0]) * {resource.getpagesize()}
resource.setrlimit(resource.RLIMIT_AS, (used + (80 << 20),) * 2)
many = OnlineSVC(gamma=0.5, random_state=0, n_jobs=64, cache_size=1).fit(X, y)
assert np.array_equal(many.decision_function(X), alone)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]


def test_reading_is_quick_beside_a_long_fit() -> None:
    """A reader never waits for a fit to end."""
    model = OnlineSVC(gamma=0.5, random_state=0).fit(X, Y)
    longest = [0.0]
    waiting = threading.Thread(target=lambda: model.set_params(epochs=100).fit(X, Y))
    waiting.start()
    while waiting.is_alive():
        began = time.perf_counter()
        model.predict(X[:5])
        longest[0] = max(longest[0], time.perf_counter() - began)
    waiting.join()
    assert longest[0] < 5.0, "a reader waited for the learner"


def test_attributes_of_one_state_beside_learn_one() -> None:
    """Parts that were read before and after a row do not fit together, and are read again."""
    model = OnlineSVC(C=10.0, gamma=1.0).fit(X[:50], Y[:50])
    rows = itertools.cycle(range(50, 600))

    def train() -> None:
        row = next(rows)
        model.learn_one(X[row], Y[row])

    def look() -> None:
        assert len(model.support_vectors_) > 0
        assert np.isfinite(model.duality_gap(X[:20], Y[:20])).all()

    Together(train, look).run(0.5)


def test_two_threads_may_run_one_learner() -> None:
    learner = ActiveLearner(OnlineSVC(gamma=0.5), X, classes=[0, 1, 2], random_state=0)

    def run() -> None:
        learner.run(lambda row: Y[row], max_labels=40)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    taught = [step["row"] for step in learner.history_]
    assert len(taught) >= 40
    assert len(set(taught)) == len(taught)


def test_learn_one_checks_columns_of_a_precomputed_kernel() -> None:
    K = X[:60] @ X[:60].T
    model = ExactSVC(kernel="precomputed").fit(K, Y[:60])
    before = model.__getstate__()
    with pytest.raises(ValueError, match="ids are not columns of X"):
        model.learn_one(K[5], 0)
    assert_untouched(before, model, "an id that is no column")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_while_a_file_is_written_stays_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = OnlineSVC(gamma=0.5).fit(X[:50], Y[:50])

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("zipfile._ZipWriteFile.close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        marginwise.save(model, tmp_path / "model.mwz")
    assert list(tmp_path.iterdir()) == []
    gc.collect()  # what is left of the archive complains here


def test_a_kernel_that_single_precision_does_not_resolve_warns() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    labels = (rows[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="not the solution|stopped at a violation"):
        OnlineSVC(kernel="poly", epochs=50, random_state=0).fit(rows + 30, labels)


@pytest.mark.parametrize(("offset", "seed"), [(1000, 5), (2000, 7)])
def test_coefficients_of_an_exact_model_add_up_or_it_warns(offset: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(60, 3))
    labels = (rows[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ExactSVC(C=100, kernel="poly", coef0=1, degree=2).fit(rows + offset, labels)
    sizes = np.abs(model.dual_coef_).sum()
    balanced = abs(model.dual_coef_.sum()) <= 1e-9 * sizes
    assert balanced or any("not the solution" in str(w.message) for w in said)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_new_classes_leave_readers_what_they_read(multiclass: str) -> None:
    """A thread that is about to predict gets the scores of the classes that it knows."""
    model = OnlineSVC(gamma=0.5, multiclass=multiclass, calibration="sigmoid")
    model.partial_fit(X[:40], Y[:40] % 2)
    view, engine = model._now(), model._engine
    scores, p = view.decision_function(X), view.predict_proba(X)
    model.partial_fit(X[Y == 2], Y[Y == 2])
    assert len(model.classes_) == 3
    assert np.array_equal(engine.decision(X)[:, 0], scores)
    assert np.array_equal(view.predict_proba(X), p)


# What daemon threads do while the interpreter ends, again and again.
ENDLESS = {
    "predict": "model.decision_function(X)",
    "function": "OnlineSVC(kernel=lambda a, b: a @ b.T).fit(X[:200], y[:200])",
    "search": "OnlineSVCCV(Cs=[1.0], gammas=[1.0], cv=2).fit(X[:200], y[:200])",
}
ENDING = """
import threading, time
import numpy as np
from marginwise import OnlineSVC, OnlineSVCCV
X = np.random.default_rng(0).normal(size=(3000, 4))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
model = OnlineSVC(gamma=1.0).fit(X[:500], y[:500])
started = threading.Semaphore(0)
def work():
    started.release()
    while True:
        {call}
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
for _ in range(4):
    started.acquire()
time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("call", ENDLESS)
def test_daemon_threads_do_not_abort_the_end_of_the_process(call: str) -> None:
    """Before Python 3.14, a thread that returned to an ended interpreter took the process down."""
    script = ENDING.format(call=ENDLESS[call])
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")
