"""Long runs: stages, chunks, checkpoints. A run that was stopped ends as one that was not."""

from __future__ import annotations

import errno
import itertools
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise import (
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    ModelFileError,
    OnlineSVC,
    TrackingSVC,
    load,
    save,
)
from marginwise._estimator.streams import SAMPLE
from marginwise._files.format import pack, unpack, write_file, write_state
from marginwise._training import checkpoint as _run
from marginwise._training import runs as _runs
from marginwise._training import sift as _sift
from marginwise._training.loop import Trainer
from marginwise._training.runs import Moment
from marginwise.invariance import ImageDeformer, VirtualSet
from tests.support import Rows, assert_same_model, assert_untouched, blobs, core_state, differences

CHUNK = 96
N = 600
X, Y = blobs(N, 0, 3, 4)
X.flags.writeable = Y.flags.writeable = False


class Staged(Rows):
    """A source with stages and a fingerprint."""

    def __init__(self, X: np.ndarray = X, y: np.ndarray = Y, stages: Any = None) -> None:
        super().__init__(X, y, [len(y)] if stages is None else stages)

    def fingerprint(self) -> str:
        return f"{self.X.sum()} {self.y.tolist()} {self.stages}"

    def learned(self) -> list[np.ndarray]:
        """What was read to be learned: after the sample that decides gamma and precision."""
        assert len(self.asked[0]) == min(len(self), SAMPLE)
        return self.asked[1:]


class Stopped(Exception):  # noqa: N818  nothing went wrong
    pass


class Stop:
    """A callback that stops a run after so many rows."""

    def __init__(self, after: int, by: type[BaseException] = Stopped) -> None:
        self.after, self.by = after, by
        self.moments: list[Moment] = []

    def __call__(self, model: Any, moment: Moment) -> None:
        self.moments.append(moment)
        if moment.examples >= self.after:
            raise self.by


def make_small(patch: pytest.MonkeyPatch) -> None:
    """Chunks of 96 rows, sketches of small models that serve for a few chunks, no slow disk."""
    patch.setattr("os.fsync", lambda _: None)
    patch.setattr(_runs, "CHUNK", CHUNK)
    sizes = {"CHUNK": CHUNK, "WORTH_A_SKETCH": 20, "MEMBERS_A_CENTRE": 2, "STALE": 0.6}
    for name, value in {**sizes, "HELD_OUT": 2, "AUDITED": 5}.items():
        patch.setattr(_sift, name, value)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def learner(kind: Any = OnlineSVC, **params: Any) -> Any:
    if kind in (OnlineSVC, GapSVC):
        params = {"pool_size": 4, **params}
    if kind is not ExactSVC:
        params = {"random_state": 0, **params}
    return kind(**{"C": 3.0, "gamma": 0.3, **params})


def state_of(model: Any) -> dict[str, Any]:
    """The arrays of the machine, and all else that is learned."""
    aside = ("plan", "seconds", "counters")  # threads and memory show there
    free = ("n_jobs", "cache_size", "verbose", "_machine")
    machine = {name: value for name, value in core_state(model).items() if name not in aside}
    rest = {name: value for name, value in model.__getstate__().items() if name not in free}
    return {**machine, **rest}


def assert_same_state(one: Any, other: Any, why: str) -> None:
    found = differences(state_of(one), state_of(other))
    assert not found, f"{why}: " + "; ".join(text[:200] for text in found)


# -- stages and epochs ----------------------------------------------------------------------------


@pytest.mark.parametrize("sift", [None, 0])
@pytest.mark.parametrize("rule", ["random", "active"])
def test_rows_come_stage_by_stage_each_once_an_epoch(sift: float | None, rule: str) -> None:
    """Shuffled within a stage, in another order in each epoch, and in chunks."""
    source = Staged(stages=[100, 300, 600])
    learner(epochs=2, selection=rule).learn_from(source, sift=sift)
    chunks = source.learned()
    assert [len(chunk) for chunk in chunks] == 2 * [96, 4, 96, 96, 8, 96, 96, 96, 12]
    orders = []
    ids = np.concatenate(chunks)
    for epoch in (ids[:600], ids[600:]):
        for first, end in ((0, 100), (100, 300), (300, 600)):
            stage = epoch[first:end]
            assert sorted(stage.tolist()) == list(range(first, end)), "not each row once"
            assert stage.tolist() != sorted(stage.tolist()), "not shuffled"
            orders.append(stage)
    for stage in range(3):
        assert orders[stage].tolist() != orders[stage + 3].tolist(), "one order for both epochs"


def test_images_are_learned_before_their_variants() -> None:
    """The stages of a virtual set: the images, four variants of each, the rest."""
    images = np.random.default_rng(0).random((20, 12))
    labels = np.arange(20) % 2
    source = VirtualSet(images, labels, ImageDeformer((3, 4), fields=5), variants=8)
    asked: list[np.ndarray] = []
    read = source.read
    source.read = lambda ids: (asked.append(ids), read(ids))[1]  # type: ignore[method-assign]
    seen: list[int] = []
    learner().learn_from(source, callback=lambda model, moment: seen.append(moment.examples))
    ids = np.concatenate(asked[1:])
    assert seen == [20, 100, 160]
    assert sorted(ids[:20].tolist()) == list(range(20))
    assert sorted(ids[20:100].tolist()) == list(range(20, 100))
    assert sorted(ids[100:].tolist()) == list(range(100, 160))


def test_the_order_is_that_of_the_seed() -> None:
    orders = []
    for params in ({}, {"random_state": 0}, {"random_state": 1}, {"shuffle": False}):
        source = Staged(stages=[100, 600])
        learner(**params).learn_from(source)
        orders.append(np.concatenate(source.learned()).tolist())
    assert orders[0] == orders[1] != orders[2]
    assert orders[3] == list(range(600))


def test_a_source_of_one_stage_is_gone_through_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback cuts it into chunks, which at random does not change the model."""
    whole = learner(shuffle=False).learn_from(Staged())
    chunked = learner(shuffle=False).learn_from(Staged(), callback=lambda *_: None)
    assert_same_state(whole, chunked, "chunks")
    monkeypatch.setattr(_runs, "CHUNK", 10**6)
    one = learner(selection="active", shuffle=False).learn_from(Staged(), callback=lambda *_: None)
    assert one.stats_["sampled"] == N, "a chunk of all rows is a pass over them"


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many rows a run was finished."""
    seen: list[int] = []
    finish = Trainer._finish

    def recording(self: Any, progress: Any) -> None:
        seen.append(int(self.engine.native.since_finish))
        finish(self, progress)

    monkeypatch.setattr(Trainer, "_finish", recording)
    return seen


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [100, 200, 300]),  # at the end of each stage
        ({"epochs": 2}, [100, 200, 300] * 2),
        ({"finish_at_end": False}, []),
        ({"finish_every": 10}, [96, 4, 96, 96, 8, 96, 96, 96, 12]),  # after each chunk
        ({"finish_every": 97}, [100, 192, 8, 192, 108]),
        ({"finish_every": 97, "finish_at_end": False}, [100, 192, 104, 192]),
        ({"finish_every": 10**6}, [100, 200, 300]),
    ],
    ids=str,
)
@pytest.mark.parametrize("sift", [None, 0])
def test_models_are_settled_after_a_stage_and_when_it_is_due(
    params: dict[str, Any], expected: list[int], sift: float | None, finished: list[int]
) -> None:
    """Rows since the last time, whenever finishing began."""
    model = learner(**params).learn_from(Staged(stages=[100, 300, 600]), sift=sift)
    assert finished == expected
    if model.finish_at_end:
        assert model._engine.delta <= model.tol


# -- callbacks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sift", [None, 0, 0.1])
def test_moments_only_grow(sift: float | None) -> None:
    """A chunk after the other; what was told before does not change under one's hands."""
    told: list[tuple[Moment, bytes]] = []
    models: list[Any] = []
    sizes: list[int] = []

    def callback(model: Any, moment: Moment) -> None:
        models.append(model)
        sizes.append(len(model.ids_))
        told.append((moment, pickle.dumps(moment)))
        assert model.predict(X[:3]).shape == (3,), "a model that is of use"
        model._engine.native.check(1e-4)

    model = learner(epochs=2).learn_from(Staged(stages=[100, 600]), sift=sift, callback=callback)
    assert all(type(given) is OnlineSVC and given is not model for given in models)
    assert [len(given.ids_) for given in models] == sizes, "a copy changed after it was given"
    moments = [moment for moment, _ in told]
    ends = [96, 100, 196, 292, 388, 484, 580, 600]
    assert [m.examples for m in moments] == ends + [600 + end for end in ends]
    assert all(a.seconds < b.seconds for a, b in itertools.pairwise(moments))
    assert moments[0].seconds > 0
    for moment, then in told:
        assert pickle.dumps(moment) == then
        assert moment.tally.rows == (0 if sift is None else moment.examples)


# -- going on -------------------------------------------------------------------------------------

RULES = ["random", "gradient", "active", "autoactive"]
SIFTS = [None, 0, 0.01]
OTHERWISE = {"n_jobs": 2, "cache_size": 1e-3, "verbose": 1}


def run(model: Any, path: Path, sift: float | None, **more: Any) -> Any:
    source = more.pop("source", None) or Staged(stages=[100, 600])
    return model.learn_from(source, sift=sift, checkpoint=path, **{"checkpoint_minutes": 0, **more})


def stop(model: Any, path: Path, sift: float | None, after: int, **more: Any) -> Stop:
    callback = Stop(after)
    with pytest.raises(Stopped):
        run(model, path, sift, callback=callback, **more)
    return callback


@pytest.mark.slow
@pytest.mark.parametrize("kind", [OnlineSVC, GapSVC])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sift", SIFTS)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    kind: Any, rule: str, sift: float | None, tmp_path: Path
) -> None:
    """To the bit, by new objects, and with other threads and memory."""
    tallies = []
    source = Staged(stages=[100, 600])
    whole = learner(kind, selection=rule).learn_from(
        source, sift=sift, callback=lambda model, moment: tallies.append(moment.tally)
    )
    if sift:
        assert tallies[-1].sketches > 1
        assert tallies[-1].asked < tallies[-1].pairs, "no sketch has judged a row"
    path = tmp_path / "run.mwz"
    stop(learner(kind, selection=rule), path, sift, 190)
    stop(learner(kind, selection=rule, **OTHERWISE), path, sift, 400)
    last: list[Any] = []
    model = run(
        learner(kind, selection=rule, n_jobs=3),
        path,
        sift,
        callback=lambda model, moment: last.append(moment.tally),
    )
    assert last[-1] == tallies[-1]
    assert_same_model(whole, model, "stopped twice")
    assert_same_state(whole, model, "stopped twice")
    model._engine.native.check(1e-4)


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory: pytest.TempPathFactory) -> dict[float | None, Any]:
    """Two epochs of two stages, finished now and then, with and without sifting."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        return {
            sift: run(learner(epochs=2, finish_every=150), folder / f"{sift}.mwz", sift)
            for sift in (None, 0.05)
        }


@pytest.mark.slow
@pytest.mark.parametrize("sift", [None, 0.05])
@pytest.mark.parametrize("after", [96, 100, 196, 580, 600, 696, 700, 1180])
def test_a_run_may_be_stopped_anywhere(
    sift: float | None, after: int, never_stopped: Any, tmp_path: Path
) -> None:
    """Between two stages and between two epochs, too."""
    path = tmp_path / "run.mwz"
    moments = stop(learner(epochs=2, finish_every=150), path, sift, after).moments
    assert moments[-1].examples == after
    model = run(learner(epochs=2, finish_every=150), path, sift)
    assert_same_state(never_stopped[sift], model, f"stopped after {after}")


@pytest.mark.slow
@pytest.mark.parametrize("by", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("where", ["read", "callback"])
@pytest.mark.parametrize("sift", [None, 0.05])
def test_ctrl_c_and_errors_may_stop_it(
    by: type[BaseException], where: str, sift: float | None, tmp_path: Path
) -> None:
    """The file is that of the chunk before, and the same object may go on."""
    path = tmp_path / "run.mwz"
    whole = run(learner(), tmp_path / "whole.mwz", sift)
    source = Staged(stages=[100, 600])
    read = source.read

    def failing(ids: np.ndarray) -> Any:
        if where == "read" and len(source.asked) == 5:
            raise by
        return read(ids)

    source.read = failing  # type: ignore[method-assign]
    model = learner()
    with pytest.raises(by):
        run(model, path, sift, source=source, callback=Stop(10**9 if where == "read" else 388, by))
    assert not hasattr(model, "_engine"), "what stops a run leaves the model as it was"
    for again in (learner(), model):
        copy = tmp_path / "copy.mwz"
        copy.write_bytes(path.read_bytes())
        assert_same_state(whole, run(again, copy, sift), f"{by.__name__} in {where}")


@pytest.mark.parametrize("kind", [TrackingSVC, KernelPerceptron, ExactSVC])
def test_other_estimators_go_on_too(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.mwz"
    small = {"source": Staged(X[:250], Y[:250], stages=[100, 250])}
    whole = run(learner(kind), tmp_path / "whole.mwz", None, **small)
    stop(learner(kind), path, None, 190, **small)
    assert_same_state(whole, run(learner(kind), path, None, **small), kind.__name__)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_a_run_whose_seed_is_unknown_goes_on_in_its_order(
    random_state: Any, tmp_path: Path
) -> None:
    """Each row is met once, by one of the two that learn."""
    path = tmp_path / "run.mwz"
    one, two = Staged(stages=[100, 600]), Staged(stages=[100, 600])
    stop(learner(random_state=random_state), path, 0, 292, source=one)
    run(learner(random_state=random_state), path, 0, source=two)
    ids = np.concatenate([*one.learned(), *two.learned()])
    assert sorted(ids.tolist()) == list(range(600))


def test_a_model_that_existed_goes_on(tmp_path: Path) -> None:
    """A run need not begin with nothing; its rows have ids after those that were learned."""
    extra = blobs(80, 5, 3, 4)
    existing = learner().partial_fit(*extra, classes=[0, 1, 2])
    path = tmp_path / "run.mwz"
    whole = run(pickle.loads(pickle.dumps(existing)), tmp_path / "whole.mwz", 0.05)
    stop(pickle.loads(pickle.dumps(existing)), path, 0.05, 292)
    model = run(learner(), path, 0.05)
    assert_same_state(whole, model, "after other rows")
    assert model._engine.native.next_id == 680
    assert model.ids_.min() < 80 <= model.ids_.max()


@pytest.mark.parametrize("sift", SIFTS)
def test_writing_changes_nothing(sift: float | None, tmp_path: Path) -> None:
    plain = learner().learn_from(Staged(stages=[100, 600]), sift=sift)
    assert_same_state(plain, run(learner(), tmp_path / "run.mwz", sift), "with a checkpoint")


def test_threads_and_memory_are_those_of_the_one_that_goes_on(tmp_path: Path) -> None:
    """A run that was too slow, or took too much memory, may go on with other means."""
    path = tmp_path / "run.mwz"
    stop(learner(), path, None, 292)
    model = run(learner(**OTHERWISE), path, None)
    assert {name: model.get_params()[name] for name in OTHERWISE} == OTHERWISE
    assert model._engine.threads == 2
    assert model._engine.plan.cache_bytes == int(1e-3 * 2**20)


def test_time_and_counts_go_on(tmp_path: Path) -> None:
    """The first moment of a run that is taken up again is the one in the file."""
    path = tmp_path / "run.mwz"
    first = stop(learner(), path, 0, 292).moments
    second: list[Moment] = []
    run(learner(), path, 0, callback=lambda model, moment: second.append(moment))
    assert [moment.examples for moment in first] == [96, 100, 196, 292]
    assert [moment.examples for moment in second] == [292, 388, 484, 580, 600]
    assert second[0] == first[-1]
    assert second[1].seconds > first[-1].seconds
    assert second[1].tally.rows == 388


# -- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sift", SIFTS)
def test_a_finished_run_is_there_at_once(sift: float | None, tmp_path: Path) -> None:
    """Nothing is read to be learned, a callback is told, and the file stays as it is."""
    path = tmp_path / "run.mwz"
    whole = run(learner(), path, sift)
    before = path.read_bytes()
    source, told = Staged(stages=[100, 600]), Stop(10**9)
    model = run(learner(), path, sift, source=source, callback=told)
    assert_same_state(whole, model, "a finished run")
    assert not source.learned()
    assert [moment.examples for moment in told.moments] == [600]
    assert path.read_bytes() == before


@pytest.mark.parametrize(("minutes", "expected"), [(0, 8), (1e6, 1)])
def test_it_is_written_when_it_is_due_and_at_the_end(
    minutes: float, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(
        _run, "write_state", lambda *given: (written.append(given[0]), write_state(*given))
    )
    run(learner(), tmp_path / "run.mwz", None, checkpoint_minutes=minutes)
    assert written == [tmp_path / "run.mwz"] * expected
    assert [path.name for path in tmp_path.iterdir()] == ["run.mwz"], "something was left behind"


def test_a_file_is_whole_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped while it is written: the file before is there, and nothing else."""
    path = tmp_path / "run.mwz"
    stop(learner(), path, None, 196)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("the disk is full")))
    with (
        pytest.warns(RuntimeWarning, match="the disk is full") as warned,
        pytest.raises(OSError, match="the disk is full") as caught,
    ):
        run(learner(), path, None)
    assert len(warned) == 1
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.mwz"]


@pytest.mark.parametrize("broken", [OSError(28, "No space left on device"), MemoryError()])
def test_a_failed_last_checkpoint_keeps_the_model(
    broken: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise broken

    monkeypatch.setattr(_run, "write_state", fail)
    whole, model = learner().learn_from(Staged(stages=[100, 600])), learner()
    with pytest.raises(OSError, match=r"last checkpoint .* all rows and is kept") as caught:
        run(model, tmp_path / "run.mwz", None, checkpoint_minutes=1e6)
    assert caught.value.filename == str(tmp_path / "run.mwz")
    assert caught.value.__cause__ is broken
    assert_same_state(whole, model, "the last checkpoint failed")


def test_a_checkpoint_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full for a while costs one warning, and nothing of the model or the file."""
    calls: list[int] = []

    def sometimes(*given: Any) -> None:
        calls.append(len(calls))
        if len(calls) in (2, 3, 5):
            raise OSError(28, "No space left on device")
        write_state(*given)

    monkeypatch.setattr(_run, "write_state", sometimes)
    with pytest.warns(RuntimeWarning, match=r"run\.mwz could not .* No space left") as warned:
        model = run(learner(), tmp_path / "run.mwz", None)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert len(calls) == 8
    whole = learner().learn_from(Staged(stages=[100, 600]))
    assert_same_state(whole, model, "some checkpoints failed")
    assert_same_state(whole, run(learner(), tmp_path / "run.mwz", None), "the last one")


FULL = """
import resource, signal, sys, warnings
import numpy as np
from marginwise import OnlineSVC
class Rows:
    classes = [0, 1]
    X = np.random.RandomState(0).standard_normal((3000, 2))
    def __len__(self): return len(self.X)
    def read(self, ids): return self.X[ids], (self.X[ids].sum(axis=1) > 0).astype(int)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
model = OnlineSVC(random_state=0)
try:
    model.learn_from(Rows(), checkpoint=sys.argv[1])
except OSError as error:
    print(error.filename == sys.argv[1], error.errno, len(model.support_) > 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    path = tmp_path / "run.mwz"
    command = [sys.executable, "-c", FULL, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, f"True {errno.EFBIG} True\n"), ran.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    model = learner()
    with pytest.raises(_run.LastCheckpointError, match=r"folder.run\.mwz") as caught:
        run(
            model,
            folder / "run.mwz",
            None,
            checkpoint_minutes=1e6,
            callback=lambda *_: folder.exists() and folder.rmdir(),
        )
    assert caught.value.errno == errno.ENOENT
    whole = learner().learn_from(Staged(stages=[100, 600]))
    assert_same_state(whole, model, "the folder was removed")


def test_a_checkpoint_is_no_model(tmp_path: Path) -> None:
    run(learner(), tmp_path / "run.mwz", None)
    with pytest.raises(ModelFileError, match="Checkpoint"):
        load(tmp_path / "run.mwz")


# -- what is refused ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a run that was stopped after some rows, with a sketch."""
    path = tmp_path_factory.mktemp("run") / "run.mwz"
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        stop(learner(class_weight={0: 1.0, 1: 2.0, 2: 1.0}), path, 0.05, 400)
    return path.read_bytes()


def refused(
    path: Path, model: Any, *words: str, source: Any = None, sift: float | None = 0.05
) -> ValueError:
    """Check that a file is refused by name, and that it and the model stay as they were."""
    data = path.read_bytes()
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are compared below
        run(model, path, sift, source=source)
    message = str(caught.value)
    for word in (str(path), *words):
        assert word in message, f"the message should mention {word!r}: {message}"
    assert_untouched(before, model, f"after the error {message!r}")
    assert path.read_bytes() == data
    assert [path.name for path in path.parent.iterdir()] == [path.name]
    return caught.value


@pytest.fixture
def path(tmp_path: Path, stopped: bytes) -> Path:
    path = tmp_path / "run.mwz"
    path.write_bytes(stopped)
    return path


WEIGHTED = {"class_weight": {0: 1.0, 1: 2.0, 2: 1.0}}


@pytest.fixture(params=["fresh", "fitted"])
def weighted(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes an estimator, one that has learned something before if so."""

    def made(**params: Any) -> Any:
        model = learner(**{**WEIGHTED, **params})
        if request.param == "fitted":
            model.learn_from(Staged(X[:50], Y[:50]))
        return pickle.loads(pickle.dumps(model))  # whose places are numbered without gaps

    return made


def test_the_file_that_others_are_made_of_is_in_order(path: Path) -> None:
    model = run(learner(**WEIGHTED), path, 0.05)
    assert_same_state(run(learner(**WEIGHTED), path, 0.05), model, "")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"C": 4.0}, ["C=3.0", "4.0"]),
        ({"gamma": 0.4}, ["gamma=0.3", "0.4"]),
        ({"gamma": "scale"}, ["gamma=0.3", "'scale'"]),
        ({"kernel": "cosine"}, ["kernel='rbf'", "'cosine'"]),
        ({"selection": "active"}, ["selection='random'", "'active'"]),
        ({"pool_size": 5}, ["pool_size=4", "5"]),
        ({"epochs": 2}, ["epochs=1", "2"]),
        ({"finish_at_end": False}, ["finish_at_end=True", "False"]),
        ({"finish_every": 7}, ["finish_every=None", "7"]),
        ({"shuffle": False}, ["shuffle=True", "False"]),
        ({"random_state": 1}, ["random_state=0", "1"]),
        ({"random_state": None}, ["random_state=0", "None"]),
        ({"class_weight": {0: 1.0, 1: 2.5, 2: 1.0}}, ["class_weight=", "2.5"]),
        ({"tol": 1e-2}, ["tol=0.001", "0.01"]),
        ({"reprocess": 2}, ["reprocess=1", "2"]),
    ],
    ids=str,
)
def test_another_parameter(path: Path, weighted: Any, params: Any, words: list[str]) -> None:
    refused(path, weighted(**params), "cannot be continued", *words)


def test_another_estimator(path: Path) -> None:
    refused(path, GapSVC(C=3.0, gamma=0.3), "OnlineSVC", "GapSVC")


@pytest.mark.parametrize("sift", [None, 0, 0.1])
def test_another_sift(path: Path, weighted: Any, sift: float | None) -> None:
    refused(path, weighted(), "sift=0.05", str(sift), sift=sift)


def test_a_run_that_was_not_sifted(tmp_path: Path) -> None:
    path = tmp_path / "run.mwz"
    stop(learner(), path, None, 196)
    refused(path, learner(), "sift=None", "0", sift=0)
    stop(learner(), tmp_path / "run.mwz", None, 292)


def changed(**change: Any) -> Staged:
    rows, labels = X.copy(), Y.copy()
    if "pixel" in change:
        rows[7, 1] += 1e-9
    if "label" in change:
        labels[7] = (labels[7] + 1) % 3
    return Staged(rows, labels, change.get("stages", [100, 600]))


@pytest.mark.parametrize(
    "change", [{"pixel": 1}, {"label": 1}, {"stages": [200, 600]}, {"stages": [600]}], ids=str
)
def test_another_source(path: Path, weighted: Any, change: Any) -> None:
    refused(path, weighted(), "another source", source=changed(**change))


class Plain(Staged):
    """A source that has no fingerprint of its own."""

    fingerprint = None  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        if name == "fingerprint":
            raise AttributeError(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("change", ["pixel", "label", "order", "fewer"])
def test_sources_without_a_fingerprint_are_told_apart(change: str, tmp_path: Path) -> None:
    """By their rows."""
    rows, labels, path = X[:300].copy(), Y[:300].copy(), tmp_path / "run.mwz"
    stop(learner(), path, 0, 192, source=Plain(rows, labels))
    whole = learner().learn_from(Plain(rows, labels), sift=0)
    copy = path.read_bytes()
    assert_same_state(whole, run(learner(), path, 0, source=Plain(rows, labels)), "the same rows")
    path.write_bytes(copy)
    if change == "pixel":
        rows[7, 1] += 1e-9
    elif change == "label":
        labels[7] = (labels[7] + 1) % 3
    elif change == "order":
        rows, labels = rows[::-1], labels[::-1]
    else:
        rows, labels = rows[:-1], labels[:-1]
    refused(path, learner(), "another source", source=Plain(rows, labels), sift=0)


# -- what no run has written ----------------------------------------------------------------------


def test_damaged_files(path: Path, stopped: bytes, seed: int) -> None:
    """Bits flipped, bytes lost, anything else: refused, or of no account."""
    rng = np.random.default_rng(seed)
    size = len(stopped)
    honest = unpack(stopped, [_run.KIND])[1]
    strange = [b"", b"PK", rng.bytes(1000), stopped[: size // 2], stopped[:-1], stopped[100:]]
    for at in rng.integers(size, size=40):
        flipped = bytearray(stopped)
        flipped[at] ^= 1 << rng.integers(8)
        strange.append(bytes(flipped))
    kinds = []
    for data in strange:
        path.write_bytes(data)
        try:
            state = _run.guarded(path, _run._unpacked)
        except ModelFileError:
            kinds.append(refused(path, learner(**WEIGHTED)))
        else:
            assert not differences(honest, state), "a flipped bit that matters went unseen"
    assert all(isinstance(kind, ModelFileError) for kind in kinds)
    assert len(kinds) > 30


def test_a_model_is_no_checkpoint(path: Path) -> None:
    save(learner(**WEIGHTED).fit(X, Y), path)
    error = refused(path, learner(**WEIGHTED), "OnlineSVC", "Checkpoint")
    assert isinstance(error, ModelFileError)


Change = Callable[[dict[str, Any]], Any]


def put(*where: Any) -> Change:
    """Put the last of these at the place that the others name."""
    *places, last, value = where

    def change(state: dict[str, Any]) -> None:
        part = state
        for place in places:
            part = part[place]
        part[last] = value

    return change


def sketch(name: str, made: Callable[[np.ndarray], Any]) -> Change:
    def change(state: dict[str, Any]) -> None:
        part = state["sieve"]["sketch"]
        part[name] = made(part[name])

    return change


def unfitted(state: dict[str, Any]) -> None:
    for name in list(state["model"]):
        if name.startswith("_") or name.endswith("_"):
            del state["model"][name]


FORGED: dict[str, Change] = {
    "a part too many": put("more", 1),
    "a part too few": lambda state: state.pop("sieve"),
    "no course": put("course", 3),
    "a course without a seed": lambda state: state["course"].pop("seed"),
    "epoch below 0": put("course", "epoch", -1),
    "epoch beyond the last": put("course", "epoch", 7),
    "stage beyond the last": put("course", "stage", 7),
    "stage after the last": put("course", "stage", 2),
    "more rows than the stage has": put("course", "done", 501),
    "many more rows": put("course", "done", 2**62),
    "half a row": put("course", "done", 0.5),
    "seed of 40 bits": put("course", "seed", 2**40),
    "seed of 64 bits": put("course", "seed", 2**63),
    "first id of 64 bits": put("course", "first", 2**63),
    "first id near the last there is": put("course", "first", 2**63 - 10),
    "no seconds": put("course", "seconds", "long"),
    "negative seconds": put("course", "seconds", -1.0),
    "no parameters": put("parameters", [1]),
    "no name": put("estimator", 3),
    "a list of names": put("estimator", ["OnlineSVC"]),
    "unknown estimator": put("estimator", "System"),
    "another estimator": put("estimator", "GapSVC"),
    "no model": put("model", 3),
    "a model that has learned nothing": unfitted,
    "a model with another C": put("model", "C", 300.0),
    "a model with other epochs": put("model", "epochs", 3),
    "alpha of the wrong size": put("model", "_machine", "alpha", np.zeros((3, 1))),
    "no sieve": put("sieve", 3),
    "an empty sieve": put("sieve", {}),
    "no loss": put("sieve", "loss", None),
    "no tally": put("sieve", "tally", None),
    "a count below 0": put("sieve", "tally", "rows", -1),
    "a count that is none": put("sieve", "tally", "rows", "many"),
    "a count too many": put("sieve", "tally", "more", 1),
    "no sketch": put("sieve", "sketch", 3),
    "a list for a sketch": put("sieve", "sketch", [1]),
    "a sketch that lacks a part": lambda state: state["sieve"]["sketch"].pop("bias"),
    "no centres": sketch("centres", lambda a: 3),
    "centres of other features": sketch("centres", lambda a: a[:, :1]),
    "fewer centres than coefficients": sketch("centres", lambda a: a[:-1]),
    "centres that are nowhere": sketch("centres", lambda a: a * np.nan),
    "centres of half precision": sketch("centres", lambda a: a.astype(np.float16)),
    "integers for centres": sketch("centres", lambda a: a.astype(np.int64)),
    "coefficients of single precision": sketch("coefficients", lambda a: a.astype(np.float32)),
    "infinite coefficients": sketch("coefficients", lambda a: a * np.inf),
    "bias of single precision": sketch("bias", lambda a: a.astype(np.float32)),
    "a bias too many": sketch("bias", lambda a: np.append(a, 0.0)),
    "reach that is no number": sketch("reach", lambda a: a * np.nan),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files(name: str, path: Path, stopped: bytes) -> None:
    """With all checksums right; a file may come from anywhere."""
    _, state = unpack(stopped, [_run.KIND])
    FORGED[name](state)
    write_file(path, pack(_run.KIND, state))
    error = refused(path, learner(**WEIGHTED))
    assert isinstance(error, ModelFileError), f"a plain {error!r}"


ODD_INTEGERS = [-(2**63), -2, -1, 0, 1, 7, 2**31, 2**62, 2**63 - 1]
ODD_FLOATS = [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 5e-324, 1e30, -1e300, 0.5]
ODD_VALUES = [None, True, "", "rbf", [], {}, [1], -1, 0, 1, 3, 2**31, 2**63, 1e300, np.zeros(2)]


def leaves(part: Any) -> list[tuple[Any, Any]]:
    """All places in nested dicts."""
    found = []
    for key, value in part.items():
        found += [(part, key), *(leaves(value) if isinstance(value, dict) else [])]
    return found


def test_mutated_files(path: Path, stopped: bytes, seed: int) -> None:
    """Re-signed, with an odd value anywhere: refused as a file, or a run that ends."""
    rng = np.random.default_rng(seed)
    refusals = 0
    for _ in range(60):
        _, state = unpack(stopped, [_run.KIND])
        places = leaves(state)
        owner, key = places[rng.integers(len(places))]
        value = owner[key]
        if isinstance(value, np.ndarray) and value.size and rng.random() < 0.7:
            odd = ODD_FLOATS if value.dtype.kind == "f" else ODD_INTEGERS
            with np.errstate(over="ignore"):
                value.flat[rng.integers(value.size)] = np.array(rng.choice(odd)).astype(value.dtype)
        else:
            owner[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
        write_file(path, pack(_run.KIND, state))
        model = learner(**WEIGHTED)
        try:
            run(model, path, 0.05)
        except ValueError as error:
            # A gamma by which the rows of the source overflow is found when they are read.
            if not isinstance(error, ModelFileError) and "too large" not in str(error):
                raise
            refusals += 1
            assert not hasattr(model, "classes_"), "a refused file changed the model"
        else:
            assert np.isfinite(model.decision_function(X)).all()
    assert refusals > 20


# -- places that cannot be written to -------------------------------------------------------------


@pytest.mark.parametrize("state", ["fresh", "fitted"])
@pytest.mark.parametrize("place", ["missing/run.mwz", "file/run.mwz", "."])
def test_a_place_that_cannot_be_written_to(state: str, place: str, tmp_path: Path) -> None:
    """An OSError that names it, before hours of work; the model is as it was."""
    (tmp_path / "file").write_text("no folder")
    model = learner()
    if state == "fitted":
        model.learn_from(Staged(X[:50], Y[:50]))
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    source = Staged(stages=[100, 600])
    with pytest.raises(OSError, match=str(tmp_path)):
        run(model, tmp_path / place, None, source=source, checkpoint_minutes=10)
    assert_untouched(before, model, "after an error")
    assert len(source.asked) <= 1, "rows were learned before it was found out"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
