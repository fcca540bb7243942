"""What must hold for a virtual set: an id is one example, whoever asks, when and how."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA

from marginwise.invariance import ImageDeformer, VirtualSet, fields

SHAPE = (4, 5)
N, VARIANTS = 12, 30
ROW = 4 * 20  # bytes of an image
MEGABYTE = 2**20

IMAGES = np.random.default_rng(0).random((N, 20)).astype(np.float32)
LABELS = np.arange(N) % 3
IMAGES.flags.writeable = LABELS.flags.writeable = False


def deformer(**params: Any) -> ImageDeformer:
    return ImageDeformer(SHAPE, **{"fields": 8, "thickening": 0.2, "random_state": 1, **params})


def virtual(variants: int = VARIANTS, n_jobs: int | None = None, **more: Any) -> VirtualSet:
    return VirtualSet(IMAGES, LABELS, deformer(n_jobs=n_jobs), variants, **more)


@pytest.fixture(scope="module")
def all_rows() -> np.ndarray:
    """Example by example, each made alone."""
    made = [deformer().deform(IMAGES[: k % N + 1], k // N, [k % N]) for k in range(N * VARIANTS)]
    return np.concatenate(made)


def bits(rows: np.ndarray) -> bytes:
    return np.ascontiguousarray(rows).tobytes()


# -- one id, one example --------------------------------------------------------------------------

Batches = list[list[int]]


@given(
    st.lists(st.lists(st.integers(0, N * VARIANTS - 1), min_size=1, max_size=40), max_size=8),
    st.sampled_from([0, 1, 3, 7, 50, 10**4]),
    st.sampled_from([None, 2]),
)
@settings(max_examples=40)
def test_the_same_id_gives_the_same_bits(
    all_rows: np.ndarray, batches: Batches, places: int, n_jobs: int | None
) -> None:
    """In any order and any batch, ids given twice, and with a cache of any number of rows."""
    source = virtual(n_jobs=n_jobs, cache_size=places * ROW / MEGABYTE)
    for batch in batches:
        X, y = source.read(np.array(batch))
        assert bits(X) == bits(all_rows[batch])
        assert y.tolist() == LABELS[np.array(batch) % N].tolist()


@pytest.mark.parametrize("n_jobs", [1, 2, 3, -1])
@pytest.mark.parametrize("places", [0, 5, 100, 10**4])
def test_the_number_of_threads_does_not_matter(
    all_rows: np.ndarray, n_jobs: int, places: int
) -> None:
    """Batches of more than 64 rows are shared among threads."""
    source = virtual(n_jobs=n_jobs, cache_size=places * ROW / MEGABYTE)
    rng = np.random.default_rng(0)
    for _ in range(4):
        order = rng.permutation(N * VARIANTS)
        assert bits(source.read(order)[0]) == bits(all_rows[order])
        again = rng.choice(N * VARIANTS, 200)
        assert bits(source.read(again)[0]) == bits(all_rows[again])


def test_an_example_does_not_depend_on_the_others_that_there_are() -> None:
    """More images, or more variants, and those that were there before are what they were."""
    few = VirtualSet(IMAGES[:5], LABELS[:5], deformer(), 3)
    more = virtual(variants=20)
    ids = np.arange(15)
    assert bits(few.read(ids)[0]) == bits(more.read(ids % 5 + N * (ids // 5))[0])


def test_variant_0_is_the_image(all_rows: np.ndarray) -> None:
    assert bits(virtual().read(np.arange(N))[0]) == bits(IMAGES) == bits(all_rows[:N])


def test_variants_differ(all_rows: np.ndarray) -> None:
    """Between the variants of an image, and from what another seed makes of it."""
    assert len(np.unique(all_rows, axis=0)) > 0.99 * len(all_rows)
    other = VirtualSet(IMAGES, LABELS, deformer(random_state=2), VARIANTS).read(
        np.arange(N * VARIANTS)
    )[0]
    assert bits(other[:N]) == bits(all_rows[:N])
    assert (other != all_rows).any(axis=1)[N:].all()


@pytest.mark.parametrize("places", [0, 10**4])
def test_what_was_read_may_be_written_to(places: int, all_rows: np.ndarray) -> None:
    """A caller who changes rows changes no later row."""
    source = virtual(cache_size=places * ROW / MEGABYTE)
    ids = np.arange(50)
    for _ in range(3):
        X, y = source.read(ids)
        assert bits(X) == bits(all_rows[ids])
        assert y.tolist() == LABELS[ids % N].tolist()
        X[:] = -1.0
        y[:] = 7


def test_what_was_given_may_be_written_to(all_rows: np.ndarray) -> None:
    """A set is the images and labels as they were when it was made."""
    images, labels = IMAGES.copy(), LABELS.copy()
    source = VirtualSet(images, labels, deformer(), VARIANTS, cache_size=0)
    before = source.fingerprint()
    images[:] = 5.0
    labels[:] = 7
    X, y = source.read(np.arange(50))
    assert y.tolist() == LABELS[np.arange(50) % N].tolist()
    assert bits(X) == bits(all_rows[:50])
    assert source.fingerprint() == before


def test_a_deformer_may_be_set_anew_for_something_else(all_rows: np.ndarray) -> None:
    """Else a set makes other images from then on, and mixes them with those in its cache."""
    shared = deformer()
    source = VirtualSet(IMAGES, LABELS, shared, VARIANTS)
    source.read(np.arange(20))
    shared.set_params(strength=9.0)
    assert bits(source.read(np.arange(50))[0]) == bits(all_rows[:50])


def test_ids_are_only_looked_at() -> None:
    ids = np.array([3, 100, 3])
    ids.flags.writeable = False
    virtual().read(ids)
    assert ids.tolist() == [3, 100, 3]


# -- the cache ------------------------------------------------------------------------------------


def counted(source: VirtualSet) -> list[int]:
    """How many images were made, call by call."""
    made: list[int] = []
    images = source.images
    source.images = lambda ids: (made.append(len(ids)), images(ids))[1]  # type: ignore[method-assign]
    return made


def test_what_is_held_is_not_made_again() -> None:
    source = virtual()
    made = counted(source)
    for _ in range(3):
        source.read(np.arange(40, 100))
    source.read(np.arange(90, 110))
    assert made == [60, 10]


@pytest.mark.parametrize("places", [0, 1, 30])
def test_the_cache_takes_no_more_than_it_may(places: int) -> None:
    """And what it has no place for is made again."""
    source = virtual(cache_size=(places + 0.5) * ROW / MEGABYTE)
    made = counted(source)
    for _ in range(2):
        source.read(np.arange(N * VARIANTS))
    held = source._cache._rows
    assert held is not None
    assert held.nbytes == places * ROW
    assert made == [N * VARIANTS, N * VARIANTS - places]


def test_a_failure_while_rows_are_made_leaves_no_wrong_rows(all_rows: np.ndarray) -> None:
    """Ctrl-C, say: afterwards the same ids give the same bits."""
    source = virtual(cache_size=10 * ROW / MEGABYTE)
    source.read(np.arange(20))
    images = source.images

    def stopped(ids: np.ndarray) -> np.ndarray:
        images(ids)
        raise KeyboardInterrupt

    source.images = stopped  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        source.read(np.arange(100, 130))
    source.images = images  # type: ignore[method-assign]
    for ids in (np.arange(130), np.arange(100, 130)):
        assert bits(source.read(ids)[0]) == bits(all_rows[ids])


# -- what it tells of itself ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variants", "bootstrap", "stages"),
    [
        (1, (1, 5), [1]),
        (4, (1, 5), [1, 4]),
        (5, (1, 5), [1, 5]),
        (9, (1, 5), [1, 5, 9]),
        (9, (), [9]),
        (9, (2, 3, 8), [2, 3, 8, 9]),
        (np.int64(9), [np.int64(1), 12], [1, 9]),
    ],
)
def test_stages_are_whole_variants(variants: int, bootstrap: Any, stages: list[int]) -> None:
    source = virtual(variants, bootstrap=bootstrap)
    assert len(source) == N * variants
    assert source.stages == [N * v for v in stages]
    assert source.stages[-1] == len(source)


@pytest.mark.parametrize("names", [["b", "a", "c"], [7, -1, 0], [True, False, True]])
def test_labels_are_those_given(names: list[Any]) -> None:
    source = VirtualSet(IMAGES, np.array(names)[LABELS], deformer(), VARIANTS)
    assert source.classes.tolist() == sorted(set(names))
    ids = np.array([0, N, 5, N * VARIANTS - 1])
    assert source.read(ids)[1].tolist() == [names[LABELS[k % N]] for k in ids]


def test_images_pass_through_the_transformer(all_rows: np.ndarray) -> None:
    """As rows to be classified would; `images` are those before."""
    projection = PCA(3, random_state=0).fit(all_rows)
    source = virtual(transform=projection, cache_size=20 * 12 / MEGABYTE)
    ids = np.random.default_rng(1).choice(N * VARIANTS, 90)
    for _ in range(2):
        X, _ = source.read(ids)
        assert X.shape == (90, 3)
        np.testing.assert_allclose(X, projection.transform(all_rows[ids]), atol=1e-5)
    assert bits(source.images(ids)) == bits(all_rows[ids])


def test_images_may_be_sparse(all_rows: np.ndarray) -> None:
    """The deformer takes them, so the set must."""
    sp = pytest.importorskip("scipy.sparse")
    source = VirtualSet(sp.csr_array(IMAGES), LABELS, deformer(), VARIANTS)
    ids = np.arange(0, N * VARIANTS, 7)
    assert bits(source.read(ids)[0]) == bits(all_rows[ids])


# -- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_copies_of_a_deformer_make_the_same_images(used: bool, all_rows: np.ndarray) -> None:
    original = deformer(n_jobs=2)
    if used:
        original.deform(IMAGES, 1)
    ids = np.arange(N * VARIANTS)
    for copy in (pickle.loads(pickle.dumps(original)), clone(original)):
        assert copy.get_params() == original.get_params()
        assert copy.fingerprint() == original.fingerprint()
        source = VirtualSet(IMAGES, LABELS, copy, VARIANTS)
        assert bits(source.read(ids)[0]) == bits(all_rows)


def test_a_copy_of_a_set_is_the_same_set(all_rows: np.ndarray) -> None:
    source = virtual()
    source.read(np.arange(100))
    copy = pickle.loads(pickle.dumps(source))
    assert copy.fingerprint() == source.fingerprint()
    assert (len(copy), copy.stages) == (len(source), source.stages)
    assert bits(copy.read(np.arange(50, 150))[0]) == bits(all_rows[50:150])


# -- fingerprints ---------------------------------------------------------------------------------


class Scaled:
    """A transformer."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self.factor * X


def test_equal_sets_have_one_fingerprint() -> None:
    """Threads and memory do not change what is learned."""
    first = virtual().fingerprint()
    used = virtual()
    used.read(np.arange(50))
    for same in (virtual(), used, virtual(n_jobs=2), virtual(n_jobs=-1), virtual(cache_size=0)):
        assert same.fingerprint() == first
    assert VirtualSet(IMAGES.copy(), LABELS, deformer(), VARIANTS).fingerprint() == first


OTHERS = {
    "shape": (5, 4),
    "strength": 2.5,
    "thickening": 0.3,
    "shift": 2,
    "affine": 0.5,
    "fields": 9,
    "field_smoothing": 4.0,
    "smoothing": 0.8,
    "random_state": 2,
}


@pytest.mark.parametrize("name", sorted(set(deformer().get_params()) - {"n_jobs"}))
def test_every_parameter_of_the_deformer_is_in_the_fingerprint(name: str) -> None:
    """A parameter without a value here was added and is not tested."""
    other = deformer().set_params(**{name: OTHERS[name]})
    assert other.fingerprint() != deformer().fingerprint()
    source = VirtualSet(IMAGES, LABELS, other, VARIANTS)
    assert source.fingerprint() != virtual().fingerprint()


def test_what_else_makes_another_set() -> None:
    pixel, label = IMAGES.copy(), LABELS.copy()
    pixel[7, 3] = np.nextafter(pixel[7, 3], np.float32(1))
    label[7] = 0
    scaled, other = (virtual(transform=Scaled(factor)) for factor in (2.0, 3.0))
    made = {
        "as it is": virtual(),
        "a pixel": VirtualSet(pixel, LABELS, deformer(), VARIANTS),
        "a label": VirtualSet(IMAGES, label, deformer(), VARIANTS),
        "names": VirtualSet(IMAGES, LABELS.astype(str), deformer(), VARIANTS),
        "order": VirtualSet(IMAGES[::-1], LABELS[::-1], deformer(), VARIANTS),
        "fewer": VirtualSet(IMAGES[:-1], LABELS[:-1], deformer(), VARIANTS),
        "variants": virtual(variants=VARIANTS + 1),
        "stages": virtual(bootstrap=(2,)),
        "a transformer": scaled,
        "another": other,
    }
    prints = {name: source.fingerprint() for name, source in made.items()}
    assert len(set(prints.values())) == len(made), prints


def test_fields_of_another_release_make_another_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint must not go on with other images than it began with."""
    before, rows = virtual().fingerprint(), virtual().read(np.arange(N, 2 * N))[0]
    monkeypatch.setattr(fields, "FIELD_RMS", 2 * fields.FIELD_RMS)
    assert (virtual().read(np.arange(N, 2 * N))[0] != rows).any()
    assert virtual().fingerprint() != before
