"""Variants of images, by the formulas of [loosli2007, section 3.2] in plain NumPy and by hand.

x' = x + s (f_x t_x + f_y t_y) + β sqrt(t_x² + t_y²), kept to the range of x, then moved by whole
pixels. Which fields, β and shift is a hash of (random_state, variant, example), SplitMix64 in plain
Python.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from marginwise.invariance import ImageDeformer, VirtualSet, contact_sheet
from marginwise.invariance.fields import AFFINE_SD, FIELD_RMS

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
FAINT = 1 / 256  # of the range: what comes nearer to the least value becomes it


def mixed(z: int) -> int:
    """The output function of SplitMix64 [steele2014]."""
    z = (z + GOLDEN) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def drawn(deformer: ImageDeformer, variant: int, example: int) -> tuple[int, int, float, int, int]:
    """The fields along x and y, β, and the shifts right and down."""
    key = mixed((mixed((mixed(deformer.random_state) + variant) & WORD) + example) & WORD)
    words = [mixed((key + k * GOLDEN) & WORD) for k in range(1, 6)]
    span = 2 * deformer.shift + 1
    return (
        words[0] * deformer.fields >> 64,
        words[1] * deformer.fields >> 64,
        deformer.thickening * ((words[2] >> 11) * 2.0**-52 - 1.0),
        (words[3] * span >> 64) - deformer.shift,
        (words[4] * span >> 64) - deformer.shift,
    )


def slope(image: np.ndarray, axis: int) -> np.ndarray:
    return np.gradient(image, axis=axis) if image.shape[axis] > 1 else np.zeros_like(image)


def moved(image: np.ndarray, right: int, down: int, background: float) -> np.ndarray:
    """The image moved by whole pixels, one pixel after the other."""
    out = np.full_like(image, background)
    height, width = image.shape[:2]
    for row, column in itertools.product(range(height), range(width)):
        if 0 <= row - down < height and 0 <= column - right < width:
            out[row, column] = image[row - down, column - right]
    return out


def bent(deformer: ImageDeformer, image: np.ndarray, f_x: Any, f_y: Any, beta: float) -> np.ndarray:
    """Elastic deformation and thickening of an image (height, width, channels), kept to range."""
    smooth = gaussian_filter(image, (deformer.smoothing, deformer.smoothing, 0), mode="nearest")
    t_x, t_y = slope(smooth, 1), slope(smooth, 0)
    along = f_x[..., None] * t_x + f_y[..., None] * t_y
    out = image + deformer.strength * along + beta * np.sqrt(t_x**2 + t_y**2)
    low, high = image.min(), image.max()
    out = np.minimum(out, high)
    return np.where(out < low + FAINT * (high - low), low, out)


def variant_of(deformer: ImageDeformer, images: np.ndarray, variant: int, row: int) -> np.ndarray:
    """A variant as the formulas have it, in double precision."""
    image = images[row].astype(np.float64).reshape(deformer.full_shape)
    field_x, field_y, beta, right, down = drawn(deformer, variant, row)
    fields = deformer.fields_.astype(np.float64)
    still = bent(deformer, image, fields[field_x], fields[field_y], beta)
    return moved(still, right, down, image.min()).ravel()


def pictures(n: int, size: int, seed: int = 0) -> np.ndarray:
    """Random pixels, some of them the background, in ranges that differ from image to image."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n, size)) < 0.3, 0.0, rng.random((n, size)))
    return (values * rng.uniform(0.5, 20, (n, 1)) + rng.normal(size=(n, 1))).astype(np.float32)


def chi_square(counts: np.ndarray) -> float:
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2 / expected).sum())


# -- the formulas ---------------------------------------------------------------------------------


def test_the_draws_written_here_are_splitmix64() -> None:
    """The first outputs of the generator as published, from state 1234567."""
    outputs = [mixed((1234567 + k * GOLDEN) & WORD) for k in range(3)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_a_line_of_four_pixels() -> None:
    # x = (0, 0, 1, 1), nothing smoothed: t_x = (0, 1/2, 1/2, 0), t_y = 0. With the one field f and
    # s = 3: x' = (0, 3/2 f_1, 1 + 3/2 f_2, 1), of which the range 0 .. 1 is kept.
    params: dict[str, Any] = {"affine": 0, "fields": 1, "field_smoothing": 0, "smoothing": 0}
    for seed in range(8):
        deformer = ImageDeformer((1, 4), strength=3.0, shift=0, random_state=seed, **params)
        f = deformer.fields_[0, 0]
        second = 1.5 * f[1] if 1.5 * f[1] >= FAINT else 0.0
        third = 1 + 1.5 * f[2]
        found = deformer.deform(np.array([[0.0, 0.0, 1.0, 1.0]]), variants=4)
        assert found[0] == pytest.approx([0.0, second, min(third, 1.0), 1.0], rel=1e-6)


def test_thickening_by_hand() -> None:
    # x = (0, 0, 1, 1) again, s = 0: x' = x + β (0, 1/2, 1/2, 0), and β is that of the draw.
    deformer = ImageDeformer(
        (1, 4), strength=0, thickening=0.5, shift=0, smoothing=0, random_state=1
    )
    variants = np.arange(1, 9)
    betas = [drawn(deformer, int(v), 0)[2] for v in variants]
    assert min(betas) < -0.1 < 0.1 < max(betas), "both thinner and thicker"
    image = np.array([[0.0, 0.0, 1.0, 1.0]])
    found = deformer.deform(image, variants, examples=np.zeros(8, dtype=int))
    for beta, row in zip(betas, found, strict=True):
        second = beta / 2 if beta / 2 >= FAINT else 0.0
        assert row == pytest.approx([0.0, second, min(1 + beta / 2, 1.0), 1.0], abs=1e-7)


@pytest.mark.parametrize("shape", [(5, 7), (7, 5, 3), (6, 4, 1), (3, 3, 2), (1, 6), (6, 1), (1, 1)])
@pytest.mark.parametrize("thickening", [0, 0.7])
@pytest.mark.parametrize("shift", [0, 1, 3, 40])
def test_variants_are_what_the_formulas_say(
    shape: tuple[int, ...], thickening: float, shift: int
) -> None:
    """Grey and in colour, high and wide, moved a little or out of sight."""
    deformer = ImageDeformer(
        shape,
        strength=1.5,
        thickening=thickening,
        shift=shift,
        affine=0.5,
        fields=9,
        random_state=7,
    )
    images = pictures(3, int(np.prod(shape)))
    originals = deformer.prepare(images)
    for variant in range(1, 6):
        found = deformer.deform(originals, variant)
        expected = [variant_of(deformer, images, variant, row) for row in range(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("variant", [1, 2**31, 2**40 + 5, 2**62])
def test_the_number_of_a_variant_may_be_large(variant: int) -> None:
    deformer = ImageDeformer((4, 5), fields=50, shift=2, random_state=2**63 - 1)
    images = pictures(70, 20)
    found = deformer.deform(images, variant)
    for row in (0, 69):
        expected = variant_of(deformer, images, variant, row)
        np.testing.assert_allclose(found[row], expected, rtol=1e-5, atol=1e-5)


def test_channels_move_together() -> None:
    """A grey image given three times over as channels: the bits of the grey variant, thrice."""
    images = pictures(5, 35)
    params: dict[str, Any] = {"fields": 20, "thickening": 0.4, "shift": 2, "random_state": 3}
    grey = ImageDeformer((5, 7), **params).deform(images, 2)
    colour = ImageDeformer((5, 7, 3), **params).deform(np.repeat(images, 3, axis=1), 2)
    assert np.array_equal(colour, np.repeat(grey, 3, axis=1))


# -- shifts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 3), (3, 4, 3)])
@pytest.mark.parametrize("shift", [1, 2, 6])
def test_every_direction_is_taken(shape: tuple[int, ...], shift: int) -> None:
    """All pixels differ, so that one in the wrong place shows; a shift of 6 may leave nothing."""
    size = int(np.prod(shape))
    image = np.linspace(1.0, 2.0, size, dtype=np.float32)[::-1][None]
    deformer = ImageDeformer(shape, strength=0, shift=shift, fields=1)
    variants = np.arange(1, 200)
    found = deformer.deform(image, variants, examples=np.zeros(len(variants), dtype=int))
    taken = set()
    for variant, row in zip(variants.tolist(), found, strict=True):
        right, down = drawn(deformer, variant, 0)[3:]
        taken.add((right, down))
        expected = moved(image.reshape(deformer.full_shape), right, down, image.min()).ravel()
        expected[expected < 1 + FAINT] = 1.0
        assert np.array_equal(row, expected), (right, down)
    signs = {(int(np.sign(right)), int(np.sign(down))) for right, down in taken}
    assert signs == set(itertools.product((-1, 0, 1), repeat=2))
    assert max(map(max, taken)) == shift == -min(map(min, taken))


def test_a_shift_larger_than_the_image_leaves_its_background() -> None:
    deformer = ImageDeformer((2, 3), strength=0, shift=10**6, fields=1)
    images = pictures(100, 6)
    empty = np.repeat(images.min(axis=1, keepdims=True), 6, axis=1)
    assert np.array_equal(deformer.deform(images, 1), empty)


# -- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 9), (4, 5, 3)])
def test_the_range_is_kept_and_what_is_faint_is_flushed(shape: tuple[int, ...]) -> None:
    images = pictures(200, int(np.prod(shape)))
    deformer = ImageDeformer(
        shape, strength=6.0, thickening=2.0, shift=1, fields=30, random_state=1
    )
    low, high = images.min(axis=1, keepdims=True), images.max(axis=1, keepdims=True)
    for variant in (1, 2, 3):
        found = deformer.deform(images, variant)
        assert ((found >= low) & (found <= high)).all()
        faint = (found > low) & (found < low + 0.999 * FAINT * (high - low))
        assert not faint.any()
        assert (found == high).any(axis=1).mean() > 0.5, "little was cut off: no test of the range"


def test_faint_values_become_the_least() -> None:
    # Range 1: 1/512 is nearer to 0 than 1/256, 1/128 is not.
    image = np.array([[0.0, 1 / 512, 1 / 128, 1.0]], dtype=np.float32)
    found = ImageDeformer((2, 2), strength=0, shift=0, fields=1).deform(image, 1)
    assert found.tolist() == [[0.0, 0.0, 1 / 128, 1.0]]


def test_variant_0_is_the_image_to_the_bit() -> None:
    """Whatever the deformer does, and with faint values, negative zeros and denormal numbers."""
    images = pictures(5, 12)
    images[0] = [0.0, -0.0, 1e-42, 1e-3, 1.0, -1.0, 3e38, -3e38, 1e-38, 2.0, 0.5, -1e-42]
    deformer = ImageDeformer((3, 4), strength=9, thickening=9, shift=3, fields=5)
    found = deformer.deform(images, 0)
    assert found.tobytes() == images.tobytes()
    assert not np.shares_memory(found, images)


@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 2)])
def test_no_strength_and_no_shift_leave_the_image_as_it_is(shape: tuple[int, ...]) -> None:
    images = pictures(5, 24)
    deformer = ImageDeformer(shape, strength=0, shift=0, fields=4)
    for variant in range(5):
        assert np.array_equal(deformer.deform(images, variant), images)


def test_an_image_of_one_colour_stays_so() -> None:
    images = np.repeat(np.array([[0.0], [-3.5], [1e-30]], dtype=np.float32), 20, axis=1)
    deformer = ImageDeformer((4, 5), strength=5, thickening=5, shift=2, fields=5)
    assert np.array_equal(deformer.deform(images, [1, 2, 3]), images)


# -- randomness -----------------------------------------------------------------------------------


@pytest.mark.parametrize("many", ["variants", "examples"])
def test_shifts_are_spread_evenly(many: str) -> None:
    """One bright pixel tells the shift. Chi-square of 24 degrees: above 51 in one of a thousand."""
    n = 2500
    dot = np.zeros((n if many == "examples" else 1, 49), dtype=np.float32)
    dot[:, 24] = 1.0
    deformer = ImageDeformer((7, 7), strength=0, shift=2, fields=1, random_state=5)
    if many == "examples":
        found = deformer.deform(dot, 3)
    else:
        found = deformer.deform(dot, np.arange(1, n + 1), examples=np.zeros(n, dtype=int))
    assert (found.sum(axis=1) == 1.0).all(), "the pixel is somewhere, once"
    counts = found.sum(axis=0).reshape(7, 7)
    assert counts[1:6, 1:6].sum() == n
    assert chi_square(counts[1:6, 1:6]) < 51


@pytest.mark.parametrize("many", ["variants", "examples"])
def test_fields_are_spread_evenly_and_independently(many: str) -> None:
    """An image that rises both ways tells the two fields. 24 degrees of freedom again."""
    n = 2000
    down, right = np.mgrid[:6, :6]
    image = (2.0 * down + right + 1).astype(np.float32)
    deformer = ImageDeformer((6, 6), strength=0.1, shift=0, fields=5, random_state=6)
    if many == "examples":
        found = deformer.deform(np.repeat(image.reshape(1, -1), n, axis=0), 1)
    else:
        variants = np.arange(1, n + 1)
        found = deformer.deform(image.reshape(1, -1), variants, examples=np.zeros(n, dtype=int))
    pairs = list(itertools.product(deformer.fields_.astype(np.float64), repeat=2))
    made = [bent(deformer, image[..., None].astype(np.float64), *pair, 0.0) for pair in pairs]
    apart = np.abs(found[:, None] - np.array(made).reshape(1, len(pairs), -1)).max(axis=2)
    assert apart.min(axis=1).max() < 1e-5, "some variant is made by no pair of fields"
    assert chi_square(np.bincount(apart.argmin(axis=1), minlength=25)) < 51


def test_thickening_is_spread_evenly() -> None:
    """β of variants 1 to n; Kolmogorov's bound, exceeded by chance in one of a thousand."""
    n = 2000
    image = np.linspace(0, 1, 8, dtype=np.float32)[None]
    deformer = ImageDeformer(
        (1, 8), strength=0, thickening=0.5, shift=0, smoothing=0, random_state=2
    )
    found = deformer.deform(image, np.arange(1, n + 1), examples=np.zeros(n, dtype=int))
    betas = np.sort((found[:, 3] - image[0, 3]) * 7)  # t_x = 1/7 everywhere
    assert np.abs(betas).max() <= 0.5
    assert np.abs((betas + 0.5) - (np.arange(n) + 0.5) / n).max() < 1.95 / np.sqrt(n)


# -- fields ---------------------------------------------------------------------------------------


def test_fields_move_pixels_by_what_they_should() -> None:
    fields = ImageDeformer((9, 13), affine=0, fields=400).fields_
    assert fields.shape == (400, 9, 13)
    assert fields.dtype == np.float32
    assert np.sqrt((fields.astype(np.float64) ** 2).mean()) == pytest.approx(FIELD_RMS, rel=1e-5)
    rough = ImageDeformer((9, 13), affine=0, fields=400, field_smoothing=0).fields_
    assert np.abs(np.diff(fields)).mean() < 0.3 * np.abs(np.diff(rough)).mean(), "not smooth"


def test_some_fields_have_an_affine_part() -> None:
    """The share asked for; it is linear in the place, zero at the centre, of the given slopes."""
    params: dict[str, Any] = {"fields": 600, "random_state": 4}
    plain = ImageDeformer((5, 8), affine=0, **params).fields_
    part = ImageDeformer((5, 8), affine=0.5, **params).fields_ - plain
    assert not part[300:].any()
    down, right = np.mgrid[:5, :8]
    places = np.stack([(down - 2.0).ravel(), (right - 3.5).ravel()], axis=1)
    slopes, *_ = np.linalg.lstsq(places, part[:300].reshape(300, -1).T, rcond=None)
    np.testing.assert_allclose(places @ slopes, part[:300].reshape(300, -1).T, atol=1e-6)
    assert slopes.std() == pytest.approx(AFFINE_SD, rel=0.1)
    assert np.abs(slopes.mean(axis=1)).max() < 4 * AFFINE_SD / np.sqrt(300)


def test_fields_are_those_of_the_parameters_at_hand() -> None:
    """Parameters may be set anew after fields were made."""
    deformer = ImageDeformer((3, 4), fields=6)
    before = deformer.fields_
    changed = deformer.set_params(random_state=9, fields=7).fields_
    assert np.array_equal(changed, ImageDeformer((3, 4), fields=7, random_state=9).fields_)
    assert np.array_equal(deformer.set_params(random_state=0, fields=6).fields_, before)


# -- ways to ask ----------------------------------------------------------------------------------


def test_images_may_come_in_their_shape_and_be_prepared() -> None:
    images = pictures(6, 24)
    grey, colour = ImageDeformer((4, 6), fields=9), ImageDeformer((4, 2, 3), fields=9)
    for deformer in (grey, colour):
        expected = deformer.deform(images, 2)
        for given in (
            images.reshape(6, *deformer.shape),
            images.reshape(6, *deformer.full_shape),
            images.astype(np.float64).tolist(),
            deformer.prepare(images),
        ):
            assert np.array_equal(deformer.deform(given, 2), expected)
    some = grey.deform(images, [3, 1, 2], examples=[5, 0, 5])
    assert np.array_equal(some[0], grey.deform(images, 3)[5])
    assert np.array_equal(some[1], grey.deform(images, 1)[0])
    assert np.array_equal(some[2], grey.deform(images, 2)[5])


# -- the sheet ------------------------------------------------------------------------------------


def sheet_source(channels: int, variants: int = 3) -> VirtualSet:
    images = np.repeat(np.array([[0.0], [1.0], [0.2], [0.6]]), 6 * channels, axis=1)
    deformer = ImageDeformer((2, 3, channels), fields=2)
    return VirtualSet(images, np.array([0, 0, 1, 1]), deformer, variants)


def test_a_sheet_shows_each_class_in_turn() -> None:
    # Images of one colour, whose variants are themselves: 0 and 0.2 of the classes' first, then 1.
    sheet = contact_sheet(sheet_source(1), images=3, variants=2, zoom=2)
    assert sheet.shape == (3 * 4 + 2 * 2, 2 * 6 + 2)
    assert sheet.dtype == np.uint8
    for row, shade in enumerate([0, 51, 255]):
        for column in range(2):
            part = sheet[row * 6 : row * 6 + 4, column * 8 : column * 8 + 6]
            assert (part == shade).all(), (row, column)


@pytest.mark.parametrize(("channels", "colour"), [(1, False), (2, False), (3, True)])
def test_a_sheet_is_written(channels: int, colour: bool, tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    sheet = contact_sheet(sheet_source(channels), tmp_path / "sheet.png")
    assert sheet.ndim == (3 if colour else 2)
    assert sheet.shape[:2] == (4 * 4 + 3 * 2, 3 * 6 + 2 * 2), "as many as there are, not more"
    written = np.rint(image.imread(tmp_path / "sheet.png")[..., 0] * 255)
    assert np.array_equal(written, sheet[..., 0] if colour else sheet)
