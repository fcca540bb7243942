"""Runs over sources in blocks and over streams: what is read, what is learned, where they stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise import ExactSVC, GapSVC, KernelPerceptron, ModelFileError, OnlineSVC, load, save
from marginwise._training import runs as _runs
from marginwise._training.checkpoint import read_note
from marginwise._training.runs import Moment
from tests.estimator.test_runs import assert_same_state, learner
from tests.support import Rows, assert_same_model, assert_untouched, blobs

CHUNK, BLOCK, N = 96, 24, 600
X, Y = blobs(N, 0, 3, 4)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr(_runs, "CHUNK", CHUNK)


class InBlocks(Rows):
    """Rows in blocks, like those of a file."""

    def __init__(self, block: int = BLOCK, random_access: bool = True) -> None:
        super().__init__(X, Y)
        self.block, self.random_access = block, random_access

    def fingerprint(self) -> str:
        return f"{self.block} {self.random_access}"

    def learned(self) -> list[np.ndarray]:
        return self.asked[1:]  # after the sample that decides gamma and precision


class Batches:
    """A stream: rows that come once."""

    def __init__(self, sizes: list[int], classes: Any = (0, 1, 2)) -> None:
        self.cuts = np.cumsum([0, *sizes]).tolist()
        self.classes = None if classes is None else np.array(classes)

    def chunks(self) -> Iterator[tuple[Any, Any]]:
        for start, stop in zip(self.cuts[:-1], self.cuts[1:], strict=True):
            yield X[start:stop], Y[start:stop]


# -- blocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("random_access", [True, False])
@pytest.mark.parametrize("epochs", [1, 2])
def test_each_block_is_read_for_one_chunk_of_an_epoch(random_access: bool, epochs: int) -> None:
    source = InBlocks(random_access=random_access)
    learner(epochs=epochs).learn_from(source)
    rows = np.concatenate(source.learned())
    assert np.array_equal(np.bincount(rows), np.full(N, epochs))
    for some in source.learned():
        assert len(np.unique(some // BLOCK)) == -(-len(some) // BLOCK) <= CHUNK // BLOCK
    if not random_access:
        starts = [some.min() for some in source.learned()]
        assert starts == epochs * sorted(starts[: len(starts) // epochs])


def test_without_shuffling_rows_come_in_their_order() -> None:
    source = InBlocks()
    learner(shuffle=False).learn_from(source)
    assert np.concatenate(source.learned()).tolist() == list(range(N))


@pytest.mark.parametrize("kind", [OnlineSVC, GapSVC, KernelPerceptron, ExactSVC])
def test_a_source_in_blocks_teaches_as_much_as_arrays(kind: Any) -> None:
    model = learner(kind).learn_from(InBlocks())
    assert abs(model.score(X, Y) - learner(kind).fit(X, Y).score(X, Y)) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, BLOCK, 150, 1000])
@pytest.mark.parametrize("after", [1, 200, 590])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    block: int, after: int, tmp_path: Path
) -> None:
    file = tmp_path / "run.mwz"
    whole = learner(epochs=2).learn_from(InBlocks(block))

    def stop(_: Any, moment: Moment) -> bool:
        return moment.examples >= after

    part = learner(epochs=2).learn_from(InBlocks(block), checkpoint=file, callback=stop)
    assert part.stats_["process"] < whole.stats_["process"]
    again = learner(epochs=2).learn_from(InBlocks(block), checkpoint=file)
    assert_same_state(again, whole, f"stopped after {after}")


def test_the_checkpoint_of_a_callback_that_ends_a_run_is_where_it_ended(tmp_path: Path) -> None:
    file = tmp_path / "run.mwz"
    source = InBlocks()
    learner().learn_from(source, checkpoint=file, checkpoint_minutes=1e6, callback=lambda *_: True)
    read = len(source.learned())
    assert read == 1
    learner().learn_from(source, checkpoint=file)
    later = np.concatenate(source.asked[2:][1:])  # after another sample
    assert len(later) == N - len(source.learned()[0])


# -- notes ----------------------------------------------------------------------------------------


def test_a_note_is_found_in_the_checkpoint(tmp_path: Path) -> None:
    file, note = tmp_path / "run.mwz", {"data": "rows.csv", "C": 3.0, "columns": ["a", "b"]}
    learner().learn_from(InBlocks(), checkpoint=file, note=note)
    assert read_note(file) == note
    learner().learn_from(InBlocks(), checkpoint=file, note={"data": "elsewhere.csv"})
    assert read_note(file) == note  # a finished run is not written again


def test_a_checkpoint_without_a_note_has_an_empty_one(tmp_path: Path) -> None:
    learner().learn_from(InBlocks(), checkpoint=tmp_path / "run.mwz")
    assert read_note(tmp_path / "run.mwz") == {}


def test_a_note_that_files_cannot_hold_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"note\.f is a function"):
        learner().learn_from(InBlocks(), checkpoint=tmp_path / "run.mwz", note={"f": blobs})


def test_a_model_has_no_note(tmp_path: Path) -> None:
    save(learner().fit(X, Y), tmp_path / "model.mwz")
    with pytest.raises(ModelFileError, match="it holds a 'OnlineSVC'"):
        read_note(tmp_path / "model.mwz")


# -- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[600], [1, 2, 597], [100] * 6])
@pytest.mark.parametrize("kind", [OnlineSVC, GapSVC, ExactSVC])
def test_a_stream_is_learned_as_by_partial_fit(kind: Any, sizes: list[int]) -> None:
    model = learner(kind).learn_from(Batches(sizes))
    other = learner(kind).partial_fit(X, Y, classes=[0, 1, 2])
    if hasattr(other, "finish"):
        other.finish()
    assert_same_model(model, other, f"cut into {sizes}")


def test_a_stream_may_bring_classes_that_were_not_named() -> None:
    assert learner().learn_from(Batches([600], classes=None)).classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="classes"):
        learner(GapSVC).learn_from(Batches([600], classes=None))


def test_a_callback_sees_every_batch_and_may_end_a_stream() -> None:
    seen: list[int] = []

    def callback(model: Any, moment: Moment) -> bool:
        seen.append(moment.examples)
        return moment.examples >= 300

    model = learner().learn_from(Batches([100] * 6), callback=callback)
    assert seen == [100, 200, 300]
    assert model.ids_.max() < 300


def test_an_existing_model_continues_with_a_stream_and_stays_if_it_breaks() -> None:
    class Breaks(Batches):
        def chunks(self) -> Iterator[tuple[Any, Any]]:
            yield X[:50], Y[:50]
            raise OSError("the network is gone")

    model = learner().fit(X, Y)
    state = model.__getstate__()
    with pytest.raises(OSError, match="network"):
        model.learn_from(Breaks([50]))
    assert_untouched(state, model, "a stream that broke")
    before = model.stats_["process"]
    assert model.learn_from(Batches([50])).stats_["process"] > before


@pytest.mark.parametrize(
    ("arguments", "params"),
    [({"sift": 0}, {}), ({"checkpoint": "run.mwz"}, {}), ({}, {"epochs": 2})],
)
def test_what_needs_more_than_one_pass_is_refused(arguments: Any, params: Any) -> None:
    with pytest.raises(ValueError, match=r"not supported with a stream, .*open_source"):
        learner(**params).learn_from(Batches([600]), **arguments)


def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="the stream is empty"):
        learner().learn_from(Batches([]))


def test_a_path_is_no_source_but_can_be_opened() -> None:
    with pytest.raises(TypeError, match=r"marginwise\.data\.open_source\('rows\.csv'\)"):
        learner().learn_from("rows.csv")


def test_a_loaded_model_continues_with_a_source_in_blocks(tmp_path: Path) -> None:
    model = learner().learn_from(InBlocks())
    save(model, tmp_path / "model.mwz")
    assert_same_model(
        load(tmp_path / "model.mwz").learn_from(InBlocks()), model.learn_from(InBlocks()), "loaded"
    )
