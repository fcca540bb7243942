"""The command `virtual`: sheets it writes, and its answers to files and options of no use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import marginwise
from marginwise._extras import install
from marginwise.cli import guessed_shape, main
from marginwise.invariance import ImageDeformer, VirtualSet, contact_sheet
from tests.support import runner

pytest.importorskip("matplotlib")


def pictures(n: int = 6, size: int = 49) -> np.ndarray:
    return np.random.default_rng(0).random((n, size), dtype=np.float32)


def stored(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def call(*arguments: object) -> Result:
    return runner().invoke(main, [str(argument) for argument in arguments])


def virtual(tmp_path: Path, *arguments: object) -> Result:
    return call("virtual", *arguments, "--out", tmp_path / "sheet.png")


def size_of(path: Path) -> tuple[int, int]:
    """Width and height that a PNG tells in its head."""
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


# -- what it does --------------------------------------------------------------------------------


def test_version_and_help() -> None:
    assert call("--version").output == f"marginwise, version {marginwise.__version__}\n"
    assert "virtual" in call("--help").output
    said = call("virtual", "--help").output
    for option in ("shape", "strength", "thickening", "shift", "seed", "images", "variants"):
        assert f"--{option}" in said


@pytest.mark.slow
def test_it_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "marginwise", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"marginwise, version {marginwise.__version__}\n"


def test_sheet_has_a_row_for_each_image(tmp_path: Path) -> None:
    file = stored(tmp_path / "six.npz", X=pictures(), y=[0, 1, 0, 1, 0, 1])
    done = virtual(tmp_path, file, "--images", 4, "--variants", 5, "--zoom", 3)
    assert done.exit_code == 0, done.output
    width, height = 5 * (21 + 2) - 2, 4 * (21 + 2) - 2
    assert size_of(tmp_path / "sheet.png") == (width, height)
    assert done.output == f"{tmp_path / 'sheet.png'}: {width} x {height} pixels\n"


def test_options_reach_the_deformer(tmp_path: Path) -> None:
    X, y = pictures(), np.arange(6)
    given = {"strength": 1.5, "thickening": 0.3, "shift": 2}
    options = [text for name, value in given.items() for text in (f"--{name}", value)]
    options += ["--seed", 7]
    done = virtual(tmp_path, stored(tmp_path / "six.npz", X_train=X, y_train=y), *options)
    assert done.exit_code == 0, done.output
    source = VirtualSet(X, y, ImageDeformer((7, 7), random_state=7, **given), variants=12)
    contact_sheet(source, tmp_path / "other.png")
    assert (tmp_path / "sheet.png").read_bytes() == (tmp_path / "other.png").read_bytes()


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 3)])
def test_arrays_of_images_tell_their_shape(shape: tuple[int, ...], tmp_path: Path) -> None:
    X = pictures(5, int(np.prod(shape))).reshape(5, *shape)
    assert guessed_shape(X) == shape
    np.save(tmp_path / "five.npy", X)
    np.save(tmp_path / "rows.npy", X.reshape(5, -1))
    assert virtual(tmp_path, tmp_path / "five.npy").exit_code == 0
    sheet = (tmp_path / "sheet.png").read_bytes()
    written = ("--shape", "x".join(map(str, shape)), "--force")
    done = virtual(tmp_path, tmp_path / "rows.npy", *written)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "sheet.png").read_bytes() == sheet


def test_sheet_has_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("six.npy", pictures())
    assert call("virtual", "six.npy", "--images", 1).output == "virtual.png: 190 x 14 pixels\n"
    assert sorted(os.listdir()) == ["six.npy", "virtual.png"]


# -- what it refuses -----------------------------------------------------------------------------


def refused(tmp_path: Path, said: str, *arguments: object, code: int = 1) -> None:
    done = virtual(tmp_path, *arguments)
    assert done.exit_code == code
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "sheet.png").exists()


def test_files_of_no_use_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, "none.npz: No such file or directory.", tmp_path / "none.npz")
    refused(tmp_path, "is a directory", tmp_path, code=2)
    for name, content in {
        "empty": b"",
        "text": b"no arrays",
        "zip": b"PK\x03\x04 and no more",
    }.items():
        (tmp_path / name).write_bytes(content)
        refused(
            tmp_path, "is not an .npz or .npy file of numbers, or it is damaged", tmp_path / name
        )
    objects = np.array([{}, {}], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    refused(tmp_path, "is not an .npz or .npy file of numbers", tmp_path / "objects.npy")


def test_files_cut_short_are_refused(tmp_path: Path) -> None:
    whole = stored(tmp_path / "six.npz", X=pictures(), y=np.arange(6)).read_bytes()
    for length in (40, len(whole) // 2, len(whole) - 30):
        (tmp_path / "part.npz").write_bytes(whole[:length])
        refused(tmp_path, "or it is damaged", tmp_path / "part.npz")


def test_arrays_that_are_not_there_are_named(tmp_path: Path) -> None:
    refused(
        tmp_path,
        "no array X or X_train; it contains pixels, y.",
        stored(tmp_path / "other.npz", pixels=pictures(), y=np.arange(6)),
    )
    refused(tmp_path, "it contains nothing.", stored(tmp_path / "nothing.npz"))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"X": np.zeros(49)}, "at least 2 dimensions, got 1"),
        ({"X": np.zeros(())}, "at least 2 dimensions, got 0"),
        ({"X": np.zeros((2, 3, 4, 5, 6))}, "shape must be (height, width)"),
        ({"X": np.zeros((6, 50))}, "rows of 50 columns are not square images: pass --shape"),
        ({"X": np.zeros((0, 49)), "y": []}, "0 sample"),
        ({"X": np.full((6, 49), np.nan)}, "NaN"),
        ({"X": np.full((6, 49), "a")}, "could not convert"),
        ({"X": pictures(), "y": [0, 1]}, "X has 6 images, but y has 2 labels"),
    ],
)
def test_arrays_of_no_use_are_refused(arrays: dict[str, Any], said: str, tmp_path: Path) -> None:
    refused(tmp_path, said, stored(tmp_path / "wrong.npz", **arrays))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shape", "7"), "HEIGHTxWIDTH[xCHANNELS], such as 28x28, got '7'"),
        (("--shape", "7x-7"), "such as 28x28"),
        (("--shape", "7x0"), "shape must be (height, width)"),
        (("--strength", "-1"), "strength must be a number from 0 to 1e+06, got -1.0"),
        (("--strength", "nan"), "strength must be a number from 0 to 1e+06, got nan"),
        (("--thickening", "much"), "'much' is not a valid float"),
        (("--shift", "-1"), "shift must be an integer from 0 to 1048576, got -1"),
        (("--seed", "-1"), "random_state must be an integer from 0 to"),
        (("--images", "0"), "0 is not in the range x>=1"),
        (("--variants", "0"), "0 is not in the range x>=1"),
        (("--zoom", "0"), "0 is not in the range x>=1"),
        (("--colour", "red"), "No such option"),
    ],
)
def test_options_of_no_use_are_refused(options: tuple[str, str], said: str, tmp_path: Path) -> None:
    refused(tmp_path, said, stored(tmp_path / "six.npz", X=pictures()), *options, code=2)


def test_shapes_of_other_images_are_refused(tmp_path: Path) -> None:
    said = "X must have 56 columns, one per pixel of images of shape 7 x 8"
    refused(tmp_path, said, stored(tmp_path / "six.npz", X=pictures()), "--shape", "7x8")


def test_sheets_are_replaced_only_by_force(tmp_path: Path) -> None:
    file = stored(tmp_path / "six.npz", X=pictures())
    (tmp_path / "sheet.png").write_text("mine")
    done = virtual(tmp_path, file)
    assert (done.exit_code, (tmp_path / "sheet.png").read_text()) == (1, "mine")
    assert virtual(tmp_path, file, "--force").exit_code == 0


def test_a_sheet_that_cannot_be_written(tmp_path: Path) -> None:
    file = stored(tmp_path / "six.npz", X=pictures())
    done = call("virtual", file, "--out", tmp_path / "none" / "sheet.png")
    assert done.exit_code == 1
    assert "there is no directory" in done.stderr


def test_matplotlib_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.image", None)
    refused(tmp_path, install("plot"), stored(tmp_path / "six.npz", X=pictures()))
