"""Bad input for virtual sets and runs: a ValueError that names what is wrong, before any work."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from marginwise import (
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
)
from marginwise.invariance import ImageDeformer, VirtualSet, contact_sheet
from tests.estimator.test_errors import refused
from tests.support import Rows, rings

IMAGES = np.random.default_rng(0).random((6, 12)).astype(np.float32)
LABELS = np.array([0, 1, 0, 1, 0, 1])
IMAGES.flags.writeable = LABELS.flags.writeable = False


def deformer(**params: Any) -> ImageDeformer:
    return ImageDeformer((3, 4), **{"fields": 5, **params})


def virtual(**params: Any) -> VirtualSet:
    given: dict[str, Any] = {"X": IMAGES, "y": LABELS, "deformer": deformer(), "variants": 3}
    return VirtualSet(**{**given, **params})


def wrong(call: Callable[[], Any], *words: str) -> None:
    """Check that a call raises a ValueError that has all these words."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are compared below
        call()
    for word in words:
        assert re.search(word, str(caught.value)), f"{word!r} is not in: {caught.value}"


# -- deformers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(3,), (3, 4, 3, 1), (0, 4), (3, -4), (3.0, 4), (True, 4), 12, "34", None, ()]
)
def test_shapes_that_are_none(shape: Any) -> None:
    wrong(lambda: ImageDeformer(shape), "shape", "height, width", re.escape(repr(shape)))


BAD_PARAMETERS = [
    ("strength", -0.1),
    ("strength", np.nan),
    ("strength", np.inf),
    ("strength", "2"),
    ("thickening", -1),
    ("thickening", None),
    ("shift", -1),
    ("shift", 0.5),
    ("shift", True),
    ("affine", -0.1),
    ("affine", 1.1),
    ("fields", 0),
    ("fields", 2.0),
    ("field_smoothing", -1),
    ("smoothing", -0.7),
    ("smoothing", np.nan),
    ("random_state", -1),
    ("random_state", None),
    ("random_state", 0.5),
    ("n_jobs", 0),
    ("n_jobs", 1.5),
]


@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS)
def test_parameters_of_a_deformer(name: str, value: Any) -> None:
    """Both when it is made and when they are set later."""
    wrong(lambda: deformer(**{name: value}), "ImageDeformer", name, re.escape(repr(value)))
    later = deformer().set_params(**{name: value})
    wrong(lambda: later.deform(IMAGES), "ImageDeformer", name)
    wrong(lambda: virtual(deformer=later), "ImageDeformer", name)


@pytest.mark.parametrize(
    ("name", "value"), [("random_state", 2**64), ("shift", 2**63), ("strength", 1e39)]
)
def test_parameters_beyond_what_the_core_holds(name: str, value: Any) -> None:
    """64 bits, and single precision: a ValueError, not a TypeError or images of NaN."""
    wrong(lambda: deformer(**{name: value}).deform(IMAGES), name)


# -- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(6, 11), (6, 13), (72,), (6, 4, 3), (12, 6), (6, 3, 4, 2), (3, 4), (0, 12)]
)
def test_images_of_another_shape(shape: tuple[int, ...]) -> None:
    X = np.zeros(shape)
    expected = ["0 sample"] if shape[0] == 0 else ["3 x 4", "12 columns", re.escape(str(X.shape))]
    wrong(lambda: deformer().deform(X), *expected)
    wrong(lambda: virtual(X=X, y=np.arange(len(X)) % 2), *expected)


def test_a_sparse_matrix_of_another_width() -> None:
    wrong(lambda: deformer().deform(sp.csr_array(np.ones((6, 11)))), "3 x 4", "12 columns")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_images_that_are_not_finite(value: float) -> None:
    X = IMAGES.copy()
    X[4, 7] = value
    kind = "NaN" if np.isnan(value) else "infinity"
    wrong(lambda: deformer().deform(X), kind, "row 4", "column 7")
    wrong(lambda: virtual(X=X), kind, "row 4", "column 7")
    wrong(lambda: virtual(X=X.reshape(6, 3, 4)), kind, "row 4", "column 7")


def test_images_that_are_no_numbers() -> None:
    wrong(lambda: deformer().deform(np.full((6, 12), "x")), "could not convert string")
    wrong(lambda: deformer().deform(IMAGES + 1j), "[Cc]omplex")


@pytest.mark.parametrize(
    ("variants", "examples", "words"),
    [
        (-1, None, ["variants", "at least 0", "-1"]),
        (1.0, None, ["variants", "integer"]),
        (True, None, ["variants", "integer"]),
        ([1, 2], None, ["variants", "6 images"]),
        ([[1] * 6], None, ["variants", "6 images"]),
        ([1, 2, -3, 4, 5, 6], None, ["variants", "-3", "index 2"]),
        (1, [0, 6], ["examples", "below 6", "6 at index 1"]),
        (1, [-1], ["examples", "at least 0", "-1 at index 0"]),
        (1, [0.0], ["examples", "integer"]),
        ([1, 2, 3], [0, 1], ["variants", "2 images"]),
    ],
)
def test_what_to_deform(variants: Any, examples: Any, words: list[str]) -> None:
    wrong(lambda: deformer().deform(IMAGES, variants, examples), *words)


def test_images_prepared_for_another_shape() -> None:
    """The core refuses what does not fit, whoever asks."""
    prepared = ImageDeformer((5, 4), fields=5).prepare(np.zeros((2, 20)))
    wrong(lambda: deformer().deform(prepared), "size of the shape")


# -- virtual sets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variants", [0, -3, 2.0, "3", None, True])
def test_numbers_of_variants(variants: Any) -> None:
    wrong(lambda: virtual(variants=variants), "variants", "integer", re.escape(repr(variants)))


@pytest.mark.parametrize(
    "bootstrap", [(0,), (5, 1), (1, 1), (1.5,), ("1",), (1, None), (True,), (-1, 2), 3, None]
)
def test_stages_that_do_not_rise(bootstrap: Any) -> None:
    wrong(lambda: virtual(bootstrap=bootstrap), "bootstrap", re.escape(repr(bootstrap)))


@pytest.mark.parametrize("cache_size", [-1, np.nan, np.inf, "64", None])
def test_sizes_of_the_cache(cache_size: Any) -> None:
    wrong(lambda: virtual(cache_size=cache_size), "cache_size", re.escape(repr(cache_size)))


@pytest.mark.parametrize("n", [0, 5, 7])
def test_labels_of_another_length(n: int) -> None:
    wrong(lambda: virtual(y=np.arange(n) % 2), "6 images", f"{n} labels")


def test_labels_that_are_a_table() -> None:
    wrong(lambda: virtual(y=np.zeros((6, 2))), "1d|shape")


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([0, 18], [r"ids\[1\] is 18", "0 to 17"]),
        ([-1], [r"ids\[0\] is -1"]),
        ([3, 10**15], [r"ids\[1\] is 1000000000000000"]),
        ([1.7], ["integer"]),
        ([True, False], ["integer"]),
        ([[0, 1]], ["ids", "sequence"]),
        (["a"], ["integers"]),
    ],
)
def test_ids_out_of_range(ids: Any, words: list[str]) -> None:
    """Never another row than was asked for, with and without rows in the cache."""
    source = virtual()
    wrong(lambda: source.read(np.array(ids)), *words)
    source.read(np.arange(18))
    wrong(lambda: source.read(np.array(ids)), *words)


@pytest.mark.parametrize("name", ["images", "variants", "zoom"])
@pytest.mark.parametrize("value", [0, 1.5, None])
def test_sheets_of_nothing(name: str, value: Any) -> None:
    wrong(lambda: contact_sheet(virtual(), **{name: value}), name, re.escape(repr(value)))


# -- runs -----------------------------------------------------------------------------------------

X, Y = rings(40, 0, noise=0.1)


def rows(X: Any = X, y: Any = Y, **more: Any) -> Rows:
    return Rows(X, y, classes=[0, 1], **more)


def learner(**params: Any) -> OnlineSVC:
    return OnlineSVC(**{"C": 5.0, "gamma": 1.0, "random_state": 0, **params})


@pytest.fixture(params=["fresh", "fitted"])
def model(request: pytest.FixtureRequest) -> OnlineSVC:
    return learner() if request.param == "fresh" else learner().fit(X, Y)


def before_any_work(model: Any, source: Rows, *words: str, **how: Any) -> None:
    """Refused before a row was read, and the model as it was."""
    refused(model, lambda: model.learn_from(source, **how), *words)
    assert len(source.asked) == 0, "rows were read before"


@pytest.mark.parametrize("sift", [-0.1, 1, 1.5, np.nan, np.inf, True, "0.1", [0.1]])
def test_sift(model: OnlineSVC, sift: Any) -> None:
    before_any_work(model, rows(), "sift", "below 1", re.escape(repr(sift)), sift=sift)


@pytest.mark.parametrize("minutes", [-1, np.nan, np.inf, None, "10", True])
def test_minutes_between_checkpoints(model: OnlineSVC, minutes: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.mwz"
    words = ["checkpoint_minutes", re.escape(repr(minutes))]
    before_any_work(model, rows(), *words, checkpoint=path, checkpoint_minutes=minutes)
    assert not path.exists()


def products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A @ B.T


@pytest.mark.parametrize("kernel", [products, "precomputed"], ids=["function", "precomputed"])
@pytest.mark.parametrize("sift", [0, 0.01])
def test_sift_with_a_kernel_of_ones_own(kernel: Any, sift: float) -> None:
    before_any_work(learner(kernel=kernel), rows(X @ X.T, Y), "sift", "kernels", sift=sift)


@pytest.mark.parametrize("kind", [ExactSVC, ExactRampSVC, KernelPerceptron])
def test_sift_for_a_model_that_learns_all_rows(kind: Any) -> None:
    before_any_work(kind(C=5.0, gamma=1.0), rows(), kind.__name__, "sift", sift=0)


def test_a_checkpoint_with_a_kernel_of_ones_own(tmp_path: Path) -> None:
    """Files hold no code."""
    model = learner(kernel=products)
    refused(
        model,
        lambda: model.learn_from(rows(), checkpoint=tmp_path / "run.mwz"),
        "OnlineSVC",
        "checkpoint",
        "kernel",
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "stages",
    [[20, 10, 40], [10, 10, 40], [0, 40], [-5, 40], [10, 30], [50], [], [10, 40, 50], [10.5, 40]],
    ids=str,
)
def test_stages_of_a_source(model: OnlineSVC, stages: list[Any]) -> None:
    words = ["source.stages", "40", re.escape(str(stages))]
    before_any_work(model, rows(stages=stages), *words)


@pytest.mark.parametrize(
    "how", [{}, {"sift": 0}, {"callback": lambda *_: None}], ids=["plain", "sifted", "watched"]
)
def test_an_empty_source(model: OnlineSVC, how: dict[str, Any], tmp_path: Path) -> None:
    before_any_work(model, rows(X[:0], Y[:0]), "empty", **how)
    before_any_work(model, rows(X[:0], Y[:0]), "empty", checkpoint=tmp_path / "run.mwz", **how)
    assert not list(tmp_path.iterdir())


def test_searching_all_rows_is_not_for_sources(model: OnlineSVC) -> None:
    model.set_params(selection="active", pool_size=None)
    before_any_work(model, rows(), "pool_size=None", "memory", sift=0)


def test_classes_are_needed(model: OnlineSVC) -> None:
    source = rows()
    del source.classes
    if hasattr(model, "_engine"):
        words = [r"\[0, 2\]", r"\[0, 1\]"]
        before_any_work(model, source, *words, classes=[0, 2], sift=0)
    else:
        before_any_work(model, source, "classes", sift=0)


FAULTS = {
    "NaN": lambda rows, labels: (
        np.where(np.arange(len(rows))[:, None] == 3, np.nan, rows),
        labels,
    ),
    "label": lambda rows, labels: (rows, np.where(np.arange(len(rows)) == 3, 7, labels)),
    "rows": lambda rows, labels: (rows[1:], labels[1:]),
    "features": lambda rows, labels: (rows[:, :1], labels),
}
WORDS = {
    "NaN": ["NaN", "row 3, column 0"],
    "label": ["unknown labels: 7", r"\[0, 1\]"],
    "rows": ["39 rows", "40 ids"],
    "features": ["1 feature", "2 features"],
}


@pytest.mark.parametrize("kind", [OnlineSVC, GapSVC])
@pytest.mark.parametrize("sift", [None, 0])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_source_leaves_the_model_as_it_was(
    kind: Any, sift: float | None, fault: str, tmp_path: Path
) -> None:
    """Found when a chunk is learned, after the sample was in order; no file is written."""

    class Faulty(Rows):
        def read(self, ids: np.ndarray) -> tuple[Any, Any]:
            rows, labels = super().read(ids)
            return FAULTS[fault](rows, labels) if len(self.asked) > 2 else (rows, labels)

    model, path = kind(C=5.0, gamma=1.0, random_state=0), tmp_path / "run.mwz"
    refused(
        model,
        lambda: model.learn_from(Faulty(X, Y, classes=[0, 1]), sift=sift, checkpoint=path),
        *WORDS[fault],
    )
    assert not list(tmp_path.iterdir())
