"""No file, however made, does more than load a model or raise ModelFileError.

Damaged files (bits flipped, bytes lost or put in) either load to the same model, where the change
is in a place that does not matter, or are refused. Forged files, with all checksums right, are
refused wherever the native core could be led astray. Neither takes more memory than a few times
the size of the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from marginwise import ModelFileError, OnlineSVC, load, save

# The poly kernel of features far from 0 is not positive semi-definite in single precision.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* reached a dual objective:sklearn.exceptions.ConvergenceWarning"
)

SPARE = 1 << 20  # bytes that loading may take beside a few times the size of the file
TIMES = 4


# -- honest files ------------------------------------------------------------------------------


@dataclass
class Sample:
    """A model file, rows to try it on, and what the model says of them."""

    data: bytes
    rows: Any
    labels: Any
    decision: Any

    @classmethod
    def of(cls, model: OnlineSVC, rows: Any, labels: Any, folder: Path) -> Sample:
        save(model, folder / "honest.mwz")
        data = (folder / "honest.mwz").read_bytes()
        return cls(data, rows, labels, model.decision_function(rows))


def dense(folder: Path) -> Sample:
    rng = np.random.RandomState(0)
    X = rng.randn(60, 3)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return Sample.of(OnlineSVC(random_state=rng, finish_every=50).fit(X, y), X, y, folder)


def lists(folder: Path) -> Sample:
    X = sp.random(60, 400, density=0.02, format="csr", random_state=np.random.RandomState(1))
    y = np.array(["ant", "bee", "cow"])[np.arange(60) % 3]
    weights = {"ant": 1.0, "bee": 2.0, "cow": 3}
    model = OnlineSVC(kernel="linear", class_weight=weights, finish_at_end=False, random_state=0)
    return Sample.of(model.fit(X, y), X, y, folder)


def matrix(folder: Path) -> Sample:
    X = np.random.RandomState(2).randn(40, 2)
    y = (X[:, 0] > 0.1).astype(bool)
    model = OnlineSVC(kernel="precomputed", random_state=0)
    return Sample.of(model.fit(X @ X.T, y), X @ X.T, y, folder)


def names(folder: Path) -> Sample:
    pandas = pytest.importorskip("pandas")
    rng = np.random.RandomState(3)
    X = pandas.DataFrame(rng.randn(50, 2) + 9.0, columns=["height", "größe"])
    y = np.array(["x", "y"], dtype=object)[rng.randint(2, size=50)]
    model = OnlineSVC(C=np.float32(2), class_weight={"x": 1.0, "y": np.float64(2)}, kernel="poly")
    return Sample.of(model.fit(X, y), X, y, folder)


def stream(folder: Path) -> Sample:
    X = np.random.RandomState(4).randn(80, 2)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = OnlineSVC(gamma=1.0, calibration="sigmoid", multiclass="ovr", random_state=0)
    return Sample.of(model.partial_fit(X, y, classes=[0, 1, 2]), X, y, folder)


SAMPLES = {"dense": dense, "lists": lists, "matrix": matrix, "names": names, "stream": stream}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sample]:
    return {name: made(tmp_path_factory.mktemp(name)) for name, made in SAMPLES.items()}


# -- trying files ------------------------------------------------------------------------------


Attempt = Callable[[bytes], OnlineSVC | str]


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """Load bytes: a model, or the reason why they are refused. Watches memory."""
    path = tmp_path / "strange.mwz"

    def tried(data: bytes) -> OnlineSVC | str:
        path.write_bytes(data)
        result: OnlineSVC | str
        tracemalloc.start()
        try:
            result = load(path)
        except ModelFileError as error:
            result = str(error)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= TIMES * len(data) + SPARE
        if isinstance(result, str):
            assert result.startswith(f"{path} cannot be loaded: ")
        return result

    return tried


def assert_refused_or_same(attempt: Any, data: bytes, sample: Sample) -> bool:
    """Tell whether the bytes are refused; if they are not, they must be the same model."""
    result = attempt(data)
    if isinstance(result, str):
        return True
    np.testing.assert_array_equal(result.decision_function(sample.rows), sample.decision)
    return False


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_in_order(samples: Any, name: str, attempt: Any) -> None:
    assert not assert_refused_or_same(attempt, samples[name].data, samples[name])
    assert not assert_refused_or_same(attempt, Forged(samples[name].data).seal(), samples[name])


def test_a_missing_file_is_no_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.mwz")
    with pytest.raises(OSError, match=r"directory|denied"):
        load(tmp_path)


# -- damage ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_flipped_bits(samples: Any, name: str, attempt: Any, seed: int) -> None:
    sample, rng = samples[name], np.random.default_rng(seed)
    refused = 0
    for at in rng.integers(len(sample.data), size=300):
        data = bytearray(sample.data)
        data[at] ^= 1 << rng.integers(8)
        refused += assert_refused_or_same(attempt, bytes(data), sample)
    assert refused > 200  # most of a file matters


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_directories_with_flipped_bits(samples: Any, name: str, attempt: Any, seed: int) -> None:
    sample, rng = samples[name], np.random.default_rng(seed)
    for at in rng.integers(1, 1200, size=300):
        data = bytearray(sample.data)
        data[-at] = rng.integers(256)
        assert_refused_or_same(attempt, bytes(data), sample)


@pytest.mark.parametrize("name", SAMPLES)
def test_cut_short(samples: Any, name: str, attempt: Any, seed: int) -> None:
    sample, rng = samples[name], np.random.default_rng(seed)
    size = len(sample.data)
    for length in [0, 1, 4, 21, 22, 23, size - 1, size - 22, *rng.integers(size, size=92)]:
        assert isinstance(attempt(sample.data[:length]), str)
        assert_refused_or_same(attempt, sample.data[size - length :], sample)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_bytes_put_in_taken_out_and_moved(samples: Any, name: str, attempt: Any, seed: int) -> None:
    sample, rng = samples[name], np.random.default_rng(seed)
    data, size = sample.data, len(sample.data)
    for _ in range(50):
        a, b, c = (int(k) for k in np.sort(rng.integers(size, size=3)))
        noise = rng.bytes(int(rng.integers(1, 40)))
        for strange in (
            data[:a] + noise + data[a:],
            data[:a] + data[a + len(noise) :],
            data[:a] + noise + data[a + len(noise) :],
            data[:a] + data[b:c] + data[a:b] + data[c:],
            data + noise,
        ):
            assert_refused_or_same(attempt, strange, sample)


def test_swapped_members(samples: Any, attempt: Any) -> None:
    sample = samples["dense"]
    forged = Forged(sample.data)
    forged.arrays["_machine.alpha"], forged.arrays["_machine.g"] = (
        forged.arrays["_machine.g"],
        forged.arrays["_machine.alpha"],
    )
    assert "checksum" in attempt(forged.seal(checksum=forged.document["sha256"]))


# -- forgery -----------------------------------------------------------------------------------


class Forged:
    """The content of a model file, to be changed and sealed again with right checksums."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        self.document: Any = json.loads(members.pop("model.json"))
        self.state = self.document["state"]
        self.arrays = {n.removesuffix(".npy"): np.load(io.BytesIO(m)) for n, m in members.items()}
        self.raw: dict[str, bytes] = {}  # members that are no arrays
        self.text: bytes | None = None  # in place of the document

    @property
    def plan(self) -> Any:
        return self.state["_machine"]["dict"]["plan"]["dict"]

    @property
    def settings(self) -> Any:
        return self.plan["settings"]["dict"]

    def put(self, name: str, at: Any, value: Any) -> None:
        self.arrays[f"_machine.{name}"][at] = value

    def change(self, name: str, changed: Callable[[Any], Any]) -> None:
        self.arrays[name] = changed(self.arrays[name])

    def members(self, checksum: str | None = None) -> dict[str, bytes]:
        members = {**{f"{name}.npy": npy(a) for name, a in self.arrays.items()}, **self.raw}
        if self.text is None:
            self.document["sha256"] = checksum or digest(self.document, members)
        return {"model.json": self.text or json.dumps(self.document).encode(), **members}

    def seal(self, checksum: str | None = None) -> bytes:
        return zipped(list(self.members(checksum).items()))


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def digest(document: Any, members: dict[str, bytes]) -> str:
    said = {key: value for key, value in document.items() if key != "sha256"}
    content = [json.dumps(said, sort_keys=True).encode()]
    for name in sorted(members):
        content += [b"\n", name.encode(), b"\n", members[name]]
    return hashlib.sha256(b"".join(content)).hexdigest()


def zipped(
    members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED, only: str = ""
) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # names that occur twice
        for name, content in members:
            chosen = method if only in ("", name) else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name), content, chosen)
    return file.getvalue()


Lie = tuple[str, str, Callable[[Forged], Any]]


def put(name: str, at: Any, value: Any) -> Callable[[Forged], Any]:
    return lambda forged: forged.put(name, at, value)


def change(name: str, changed: Callable[[Any], Any]) -> Callable[[Forged], Any]:
    return lambda forged: forged.change(name, changed)


def plan(**values: Any) -> Callable[[Forged], Any]:
    return lambda forged: forged.plan.update(values)


def settings(**values: Any) -> Callable[[Forged], Any]:
    return lambda forged: forged.settings.update(values)


def says(**values: Any) -> Callable[[Forged], Any]:
    return lambda forged: forged.state.update(values)


def document(**values: Any) -> Callable[[Forged], Any]:
    return lambda forged: forged.document.update(values)


def text(content: bytes) -> Callable[[Forged], Any]:
    return lambda forged: setattr(forged, "text", content)


def raw(header: str, body: bytes = b"", version: bytes = b"\x01\x00") -> Callable[[Forged], Any]:
    """Replace `_costs` by a .npy file with a header of one's own."""
    line = header.encode() + b" " * (117 - len(header)) + b"\n"
    content = b"\x93NUMPY" + version + struct.pack("<H", len(line)) + line + body

    def forge(forged: Forged) -> None:
        del forged.arrays["_costs"]
        forged.raw["_costs.npy"] = content

    return forge


def header(descr: str, shape: str, order: str = "False") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"


def closed_alpha(forged: Forged) -> None:
    alpha, rank = forged.arrays["_machine.alpha"], forged.arrays["_machine.rank"]
    rank.flat[np.flatnonzero(alpha)[0]] = -1


def repeated_id(forged: Forged) -> None:
    held = np.flatnonzero((forged.arrays["_machine.rank"] >= 0).any(axis=0))
    forged.arrays["_machine.ids"][held[0]] = forged.arrays["_machine.ids"][held[1]]


def id_of_a_dropped_member(forged: Forged) -> None:
    """One that was dropped may share the id of one that is held, but only of a later one."""
    for name, value in (("rank", -1), ("alpha", 0.0)):
        forged.put(name, (slice(None), -1), value)
    forged.put("ids", -1, forged.arrays["_machine.ids"][0])


def outside_the_box(forged: Forged) -> None:
    alpha, costs = forged.arrays["_machine.alpha"], forged.arrays["_machine.costs"]
    alpha[0] = np.where(alpha[0] != 0, np.sign(alpha[0]) * np.nextafter(costs, np.inf), 0)


def wrong_side(forged: Forged) -> None:
    forged.arrays["_machine.alpha"] *= -1


def instead(prefix: str, forge: Callable[[Forged], Any]) -> Callable[[Forged], Any]:
    """Forge something that leaves out the arrays whose names begin with `prefix`."""

    def forge_without(forged: Forged) -> None:
        forged.arrays = {k: a for k, a in forged.arrays.items() if not k.startswith(prefix)}
        forge(forged)

    return forge_without


def named(features: list[Any]) -> Callable[[Forged], Any]:
    return instead("feature_names_in_", says(feature_names_in_={"objects": features}))


def random_state(at: int, value: Any) -> Callable[[Forged], Any]:
    return lambda forged: forged.state["random_state"]["RandomState"].__setitem__(at, value)


def same_array_twice(forged: Forged) -> None:
    forged.state["_costs"] = forged.state["_balance"]


def foresight(**values: Any) -> Callable[[Forged], Any]:
    """Put other values in place of the parts of the foresight; None takes one away."""

    def forge(forged: Forged) -> None:
        for name, value in values.items():
            if value is None:
                del forged.state["_foresight"]["dict"][name]
                del forged.arrays[f"_foresight.{name}"]
            elif callable(value):
                forged.change(f"_foresight.{name}", value)
            else:
                forged.state["_foresight"]["dict"][name] = value
                del forged.arrays[f"_foresight.{name}"]

    return forge


def first(value: Any) -> Callable[[Any], Any]:
    """Change the first value of an array."""

    def changed(array: Any) -> Any:
        array[0] = value
        return array

    return changed


def no_foresight(forged: Forged) -> None:
    del forged.state["_foresight"]
    for name in ("seen", "kept", "f", "weight"):
        del forged.arrays[f"_foresight.{name}"]


def foresight_of_another(forged: Forged) -> None:
    forged.plan["foresees"] = False


def moved_values(forged: Forged) -> None:
    """The right number in all, but one problem keeps fewer than none."""
    kept = forged.arrays["_foresight.kept"]
    kept[:] = [kept.sum() + 7, -7, 0]


LIES: list[Lie] = [
    # what is known for probabilities
    ("stream", "_foresight must have the parts", no_foresight),
    ("stream", "_foresight must have the parts", foresight(seen=None)),
    ("stream", "_foresight must have the parts", foresight(weight=None)),
    ("stream", "_foresight is not of a model", foresight_of_another),
    ("stream", "foresees must be", plan(foresees=1)),
    ("stream", "foresees must be", plan(foresees=None)),
    ("dense", "_foresight must have the parts", plan(foresees=True)),
    ("stream", "calibration must be", says(calibration="platt")),
    ("stream", "calibration must be", says(calibration=True)),
    ("stream", "f of _foresight must be", foresight(f=lambda a: a.astype(np.float32))),
    ("stream", "f of _foresight must be", foresight(f=lambda a: a[:, np.newaxis])),
    ("stream", "f of _foresight must be", foresight(f=[0.5])),
    ("stream", "kept of _foresight must be", foresight(kept=lambda a: a.astype(np.int32))),
    ("stream", "seen of _foresight must be", foresight(seen=lambda a: a[:-1])),
    ("stream", "seen of _foresight must be", foresight(seen=lambda a: np.append(a, 1))),
    ("stream", "seen of _foresight must be", foresight(seen=first(-1))),
    ("stream", "seen of _foresight must be", foresight(seen=first(2**63 - 1))),
    ("stream", "kept of _foresight must be", foresight(kept=lambda a: a[:1])),
    ("stream", "kept of _foresight must be", foresight(kept=first(-1))),
    ("stream", "kept of _foresight must be", foresight(kept=first(2**62))),
    ("stream", "kept of _foresight must be", foresight(kept=first(5000))),
    ("stream", "kept of _foresight must be", moved_values),
    ("stream", "f and weight of _foresight must have", foresight(kept=first(1))),
    ("stream", "f and weight of _foresight must have", foresight(f=lambda a: a[:-1])),
    ("stream", "f and weight of _foresight must have", foresight(weight=lambda a: a[:0])),
    ("stream", "f and weight of _foresight must be", foresight(f=first(np.nan))),
    ("stream", "f and weight of _foresight must be", foresight(f=first(np.inf))),
    ("stream", "f and weight of _foresight must be", foresight(weight=first(np.nan))),
    ("stream", "f and weight of _foresight must be", foresight(weight=first(-np.inf))),
    ("stream", "f and weight of _foresight must be", foresight(weight=first(0.0))),
    # arrays of the machine
    ("dense", "labels must be", put("labels", 0, 2)),
    ("lists", "labels must be", put("labels", 0, -1)),
    ("dense", "costs must be", put("costs", 0, 0.0)),
    ("dense", "costs must be", put("costs", 0, -1.0)),
    ("dense", "costs must be", put("costs", 0, np.nan)),
    ("dense", "costs must be", put("costs", 0, np.inf)),
    ("dense", "alpha must lie between", put("alpha", (0, 0), np.nan)),
    ("dense", "alpha must lie between", outside_the_box),
    ("dense", "alpha must lie between", wrong_side),
    ("dense", "alpha must be 0 where", closed_alpha),
    ("lists", "g must be finite", put("g", (2, 0), np.inf)),
    ("dense", "g must be the gradient", put("g", (0, 0), 1e300)),
    ("dense", "g must be the gradient", put("g", (0, 3), -20.0)),
    ("lists", "g must be the gradient", put("g", (2, 0), -1e300)),
    ("matrix", "g must be the gradient", put("g", (0, 0), 1e300)),
    ("names", "g must be the gradient", put("g", (0, 0), 1e300)),
    ("dense", "g must be the gradient", change("_machine.g", np.zeros_like)),
    ("dense", "g must be the gradient", change("_machine.alpha", np.zeros_like)),
    ("lists", "rank must be -1 or more", put("rank", (0, 0), -2)),
    ("lists", "ranks must be different", change("_machine.rank", np.ones_like)),
    ("lists", "ids of members that are held", repeated_id),
    ("lists", "ids of members that are held", id_of_a_dropped_member),
    ("dense", "notes must begin with counts", put("notes", (0, 0), -1.0)),
    ("dense", "notes must begin with counts", put("notes", (0, 0), np.nan)),
    ("dense", "notes must begin with counts", put("notes", (0, 0), 0.5)),
    ("dense", "notes must be an array", change("_machine.notes", lambda a: a[:, :0])),
    ("dense", "box must be known", put("box", (0, 0), 2)),
    ("dense", "box must be known", put("box", (0, 0), 9)),
    ("dense", "trail must be finite", put("trail", (0, 0), np.inf)),
    ("dense", "counters must be counts", put("counters", 3, -1)),
    ("dense", "counters must be counts", put("counters", 3, 2**63 - 1)),
    ("dense", "must be an array of int32 of shape", change("_machine.ids", lambda a: a[:-1])),
    ("dense", "ids must be an array of int64", change("_machine.ids", np.float64)),
    ("dense", "alpha must be an array", change("_machine.alpha", lambda a: a.T)),
    ("dense", "alpha must be an array", change("_machine.alpha", lambda a: a[0])),
    ("dense", "labels must be an array", change("_machine.labels", np.int64)),
    ("dense", "counters must be an array", change("_machine.counters", lambda a: a[:-1])),
    # features
    ("dense", "features must be finite", put("X", (0, 0), np.nan)),
    ("matrix", "features must be finite", put("X", (0, 0), -np.inf)),
    ("dense", "too large for their precision", put("X", (0, 0), 1e30)),
    ("matrix", "too large for their precision", put("X", (0, 0), 1e160)),
    ("names", "beyond the range of kernel values", put("X", (0, 0), 1e15)),
    ("dense", "X must be an array", change("_machine.X", lambda a: a[:, :-1])),
    ("dense", "X must be an array", change("_machine.X", np.float64)),
    ("matrix", "rows must end with their ids", put("X", (0, -1), 7.5)),
    ("matrix", "rows must end with their ids", put("X", (slice(None), -1), -1.0)),
    ("matrix", "ids, columns of X", put("ids", 0, 40)),
    ("lists", "features must be finite", put("data", 0, np.nan)),
    ("lists", "indices must be numbers", put("indices", 0, 400)),
    ("lists", "indices must be numbers", put("indices", 0, -1)),
    ("lists", "indices must ascend", change("_machine.indices", np.zeros_like)),
    ("lists", "indices must ascend", change("_machine.indices", lambda a: a[::-1].copy())),
    ("lists", "indptr must count", put("indptr", 0, 1)),
    ("lists", "indptr must count", put("indptr", -1, 10**6)),
    ("lists", "indptr must not decrease", put("indptr", 5, 10**6)),
    ("lists", "indptr must not decrease", put("indptr", 5, -1)),
    ("lists", "indptr must be an array", change("_machine.indptr", lambda a: a[:-1])),
    ("lists", "indices must be an array", change("_machine.indices", lambda a: a[:-1])),
    # the plan
    ("dense", "kernel must be one of", plan(kernel="precomputed")),
    ("dense", "kernel was changed", plan(kernel="callable")),
    ("matrix", "kernel was changed", plan(kernel="rbf")),
    ("dense", "features must fit", says(kernel="precomputed")),
    ("dense", "gamma must be", plan(gamma=0.0)),
    ("dense", "gamma must be", plan(gamma="scale")),
    ("dense", "gamma must be", plan(gamma=True)),
    ("dense", "degree must be", plan(degree=0)),
    ("dense", "degree must be", plan(degree=2**31)),
    ("dense", "problems must fit", plan(problems=2)),
    ("lists", "problems must fit", plan(problems=1)),
    ("dense", "features must fit", plan(features=4)),
    ("dense", "features must be an integer", plan(features=-3)),
    ("dense", "features must be an integer", plan(features=2**31)),
    ("dense", "sparse must be", plan(sparse=0)),
    ("dense", "center belongs to", plan(sparse=True)),
    ("lists", "lacks 'X'", plan(sparse=False)),
    ("names", "does not know 'X'", plan(sparse=True)),
    ("dense", "X must be an array of float64", plan(double=True)),
    ("matrix", "double and dense", plan(double=False)),
    ("dense", "tol must be", settings(tol=0.0)),
    ("dense", "reprocess must be", settings(reprocess=-2)),
    ("dense", "reprocess must be", settings(reprocess=2**63)),
    ("dense", "reprocess_each must be", settings(reprocess_each=1)),
    ("dense", "cache_bytes must be", plan(cache_bytes=-2)),
    ("dense", "delta_max must", settings(delta_max=-0.5)),
    ("dense", "lacks 'reprocess'", lambda forged: forged.settings.pop("reprocess")),
    ("dense", "does not know 'steps'", settings(steps=1)),
    ("dense", "algorithm must be", plan(algorithm="magic")),
    ("dense", "algorithm is not that of OnlineSVC", plan(algorithm="gap")),
    ("dense", "settings must be", plan(settings=1)),
    ("dense", "center must have", change("_machine.plan.center", lambda a: a[:-1])),
    ("dense", "not finite", change("_machine.plan.center", lambda a: a * np.nan)),
    ("dense", "center must be a list", instead("_machine.plan", plan(center=[1, 2, 3]))),
    ("dense", "center is too far", change("_machine.plan.center", lambda a: a + 1e160)),
    ("names", "center belongs to", plan(center=[0.0, 0.0])),
    ("dense", "lacks 'gamma'", lambda forged: forged.plan.pop("gamma")),
    ("dense", "does not know 'secret'", plan(secret=1)),
    # parameters
    ("dense", "C must be", says(C=-1.0)),
    ("dense", "C must be", says(C="1")),
    ("dense", "kernel must be", says(kernel="os.system")),
    ("dense", "n_jobs must be", says(n_jobs=0)),
    ("dense", "n_jobs must be", says(n_jobs=2**63)),
    ("dense", "degree must be", says(degree=2**40)),
    ("names", "random_state must be", says(random_state=-1)),
    ("dense", "class_weight must be", says(class_weight={"items": [[0, -1.0]]})),
    ("dense", "class_weight must be", says(class_weight=[1, 2])),
    ("dense", "finish_at_end must be", says(finish_at_end="yes")),
    ("dense", "verbose must be", says(verbose="loud")),
    ("dense", "lacks 'C'", lambda forged: forged.state.pop("C")),
    # attributes
    ("dense", "does not know 'secret'", says(secret=1)),
    ("dense", "lacks '_machine'", instead("_machine", lambda f: f.state.pop("_machine"))),
    ("dense", "lacks '_seen'", lambda forged: forged.state.pop("_seen")),
    ("dense", "classes_ must be in order", change("classes_", lambda a: a[::-1].copy())),
    ("dense", "classes_ must be in order", change("classes_", np.zeros_like)),
    ("dense", "classes_ must be two", change("classes_", lambda a: a[:1])),
    ("dense", "classes_ must be a list", change("classes_", lambda a: a[None])),
    ("dense", "classes_ must be a list", instead("classes_", says(classes_=[0, 1]))),
    ("dense", "features must fit", says(n_features_in_=2)),
    ("dense", "n_features_in_ must be", says(n_features_in_=True)),
    ("dense", "_seen must be", says(_seen=-1)),
    ("dense", "_seen must be", says(_seen=2**63)),
    ("dense", "_costs must be finite", change("_costs", lambda a: -a)),
    ("dense", "_balance must be an array", change("_balance", lambda a: a[:1])),
    ("names", "feature_names_in_ must be an array", named(["a"])),
    ("names", "feature_names_in_ must be strings", named(["a", 1])),
    ("dense", "must be a dict", instead("_machine", says(_machine=None))),
    ("dense", "must be a dict", instead("_machine", says(_machine={"dict": {"plan": []}}))),
    # random states
    ("dense", "not the state of a RandomState", random_state(1, 625)),
    ("dense", "not the state of a RandomState", random_state(1, -1)),
    ("dense", "not the state of a RandomState", random_state(2, 2)),
    ("dense", "not the state of a RandomState", random_state(3, "0")),
    ("dense", "not the state of a RandomState", change("random_state", lambda a: a[:-1])),
    ("dense", "random_state must be a list", change("random_state", np.int64)),
    # values
    ("dense", "unknown type 'eval'", says(C={"eval": "1"})),
    ("dense", "unknown type", says(C={"tuple": [], "list": []})),
    ("dense", "unknown type None", says(C={})),
    ("dense", "KeyError", says(C={"array": "none"})),
    ("dense", "KeyError", same_array_twice),
    ("dense", "TypeError", says(C={"array": []})),
    ("dense", "unexpected member extra", lambda f: f.arrays.update(extra=np.zeros(1))),
    ("dense", "no .npy file", lambda f: f.raw.update({"README": b"hello"})),
    ("dense", "unknown scalar 'object'", says(C={"scalar": ["object", 1]})),
    ("dense", "unknown scalar 'int8'", says(C={"scalar": ["int8", "1"]})),
    ("dense", "no float32", says(C={"scalar": ["float32", 1e300]})),
    ("dense", "no float64", says(C={"scalar": ["float64", 1]})),
    ("dense", "is inf", says(C=float("inf"))),
    ("dense", "is nan", says(C=float("nan"))),
    ("dense", "1024 bits", says(C=2**1023)),
    ("dense", "1024 bits", says(C=-(2**2000))),
    ("dense", "TypeError", says(class_weight={"items": [[[], 1.0]]})),
    ("dense", "something else than values", says(C={"objects": [[]]})),
    ("names", "do not fit their text", change("classes_.ends", lambda a: a + 1)),
    ("names", "do not fit their text", change("classes_.ends", lambda a: a[::-1].copy())),
    ("names", "UnicodeDecodeError", change("classes_.text", lambda a: a | 0x80)),
    ("names", "must be a list of uint8", change("classes_.text", np.int64)),
    # .npy
    ("dense", "not as large as its shape", raw(header("<f8", "(3,)"), bytes(16))),
    ("dense", "not as large as its shape", raw(header("<f8", f"({10**17}, {10**17})"), bytes(16))),
    ("dense", "_costs must be an array", raw(header("<f8", f"(0, {10**17})"))),
    ("dense", "no .npy file", raw(header("<f8", "(-2,)"), bytes(16))),
    ("dense", "no .npy file", raw(header("<f8", "()"), bytes(8))),
    ("dense", "no .npy file", raw(header("<f8", "(2,)", "True"), bytes(16))),
    ("dense", "no .npy file", raw(header(">f8", "(2,)"), bytes(16))),
    ("dense", "no .npy file", raw(header("<f8", "(2,)"), bytes(16), b"\x02\x00")),
    ("dense", "no .npy file", raw("__import__('os').abort()", bytes(16))),
    ("dense", "no .npy file", raw("(" * 100, bytes(16))),
    ("dense", "an array of O8", raw(header("|O8", "(2,)"), bytes(16))),
    ("dense", "an array of V8", raw(header("|V8", "(2,)"), bytes(16))),
    ("dense", "an array of M8", raw(header("<M8", "(2,)"), bytes(16))),
    ("dense", "an array of c16", raw(header("<c16", "(1,)"), bytes(16))),
    ("dense", "an array of U0", raw(header("<U0", f"({10**17},)"))),
    ("dense", "no bools", raw(header("|b1", "(2,)"), b"\1\2")),
    ("dense", "no characters", raw(header("<U1", "(2,)"), b"\xff" * 8)),
    # the document
    ("dense", "marginwise 9.9.9 or newer is needed", document(format=7, marginwise="9.9.9")),
    ("dense", "0 is not a format number", document(format=0)),
    ("dense", "no format number", document(format="1")),
    ("dense", "no format number", document(format=True)),
    ("dense", "no format number", document(format=None)),
    ("dense", "holds a 'Popen'", document(**{"class": "Popen"})),
    ("dense", "holds a None", document(**{"class": None})),
    ("dense", "does not have the keys", document(state=[])),
    ("dense", "does not have the keys", document(more=1)),
    ("dense", "does not have the keys", lambda forged: forged.document.pop("class")),
    ("dense", "no format number", text(b"[]")),
    ("dense", "JSONDecodeError", text(b"{")),
    ("dense", "UnicodeDecodeError", text(b'"\xff"')),
    ("dense", "RecursionError", text(b"[" * 500_000)),
    ("dense", "too large", text(b"[" + b"[]," * 400_000 + b"[]]")),
    ("dense", "Exceeds the limit", text(b'{"format": ' + b"9" * 5000 + b"}")),
]


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: f"{lie[0]}: {lie[1]}")
def test_forged_content(samples: Any, lie: Lie, attempt: Any) -> None:
    name, message, forge = lie
    forged = Forged(samples[name].data)
    forge(forged)
    assert message in attempt(forged.seal())


def test_the_checksum_is_checked(samples: Any, attempt: Any) -> None:
    forged = Forged(samples["dense"].data)
    forged.put("counters", 2, 7)
    assert "checksum" in attempt(forged.seal(checksum=forged.document["sha256"]))
    assert isinstance(attempt(forged.seal()), OnlineSVC)


ODD_INTEGERS = [-(2**63), -2, -1, 0, 1, 2, 7, 2**31 - 1, 2**31, 2**62, 2**63 - 1]
ODD_FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 5e-324, 1e30, -1e300, 1.8e308, 0.5]
ODD_VALUES = [None, True, False, "", "rbf", [], {}, [1], {"a": 1}, -1, 0, 1, 3, 2**31, 2**63, 1e300]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_forged_numbers(samples: Any, name: str, attempt: Any, seed: int) -> None:
    """Whatever number stands in an array: refused, or a model that works."""
    sample, rng = samples[name], np.random.default_rng(seed)
    honest = Forged(sample.data)
    for _ in range(60):
        forged = Forged(sample.data)
        key = rng.choice(list(forged.arrays))
        array = forged.arrays[key]
        odd = {"f": ODD_FLOATS, "i": ODD_INTEGERS}.get(array.dtype.kind)
        if odd is None or key.endswith(".ends"):  # other strings make another model
            continue
        with np.errstate(over="ignore"):
            array.flat[rng.integers(array.size)] = np.array(rng.choice(odd)).astype(array.dtype)
        result = attempt(forged.seal())
        if not isinstance(result, str):
            assert_works(result, sample)
    assert not assert_refused_or_same(attempt, honest.seal(), sample)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_forged_values(samples: Any, name: str, attempt: Any, seed: int) -> None:
    """Whatever value stands in the JSON: refused, or a model that works."""
    sample, rng = samples[name], np.random.default_rng(seed)
    for _ in range(60):
        forged = Forged(sample.data)
        owner, key = random_leaf(forged.document, rng)
        owner[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
        result = attempt(forged.seal())
        if not isinstance(result, str):
            assert_works(result, sample)


def random_leaf(tree: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[rng.integers(len(keys))]
        below = tree[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.1:
            return tree, key
        tree = below


def assert_works(model: OnlineSVC, sample: Sample) -> None:
    """A model may be odd, but predicts and learns."""
    assert model.decision_function(sample.rows).shape == sample.decision.shape
    model.set_params(n_jobs=None)
    labels = model.classes_[np.arange(5) % 2]  # whatever classes the file names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.partial_fit(sample.rows[:5], labels, ids=np.arange(5))
    assert model.predict(sample.rows).shape == (len(sample.labels),)
    if hasattr(model, "predict_proba") and model._is_calibrated():
        assert np.isfinite(model.predict_proba(sample.rows)).all()


# -- zip files ---------------------------------------------------------------------------------


def swap_in(members: list[tuple[str, bytes]], old: str, new: str) -> list[tuple[str, bytes]]:
    return [(new if name == old else name, content) for name, content in members]


ARCHIVES: dict[str, tuple[str, Callable[[list[tuple[str, bytes]]], bytes]]] = {
    "unknown member": ("checksum", lambda m: zipped([*m, ("notes.npy", m[1][1])])),
    "member twice": ("unexpected member", lambda m: zipped([*m, m[1]])),
    "document twice": ("unexpected member", lambda m: zipped([*m, m[0]])),
    "no document": ("no model.json", lambda m: zipped(m[1:])),
    "array missing": ("checksum", lambda m: zipped(m[:-1])),
    "absolute": ("unexpected member", lambda m: zipped([*m, ("/etc/x.npy", m[1][1])])),
    "traversal": ("unexpected member", lambda m: zipped([*m, ("../x.npy", m[1][1])])),
    "backslash": ("unexpected member", lambda m: zipped([*m, ("a\\x.npy", m[1][1])])),
    "folder": ("unexpected member", lambda m: zipped([*m, ("folder/", b"")])),
    "other name": ("checksum", lambda m: zipped(swap_in(m, "_costs.npy", "costs.npy"))),
    "deflated": ("larger than the file", lambda m: zipped(m, zipfile.ZIP_DEFLATED)),
    "one deflated": (
        "is compressed",
        lambda m: zipped(m, zipfile.ZIP_DEFLATED, only="_costs.npy"),
    ),
    "bomb": (
        "larger than the file",
        lambda m: zipped([*m, ("bomb.npy", bytes(1 << 26))], zipfile.ZIP_DEFLATED),
    ),
    "many members": (
        "list of members is too long",
        lambda m: zipped([*m, *((f"m{k}.npy", b"") for k in range(5000))]),
    ),
    "comment": ("not a zip file", lambda m: zipped(m)[:-2] + b"\x04\x00note"),
    "empty archive": ("no model.json", lambda m: zipped([])),
    "empty": ("not a zip file", lambda m: b""),
    "text": ("not a zip file", lambda m: b"a model, honestly" * 100),
    "pickle": ("not a zip file", lambda m: b"\x80\x04cos\nsystem\n(S'true'\ntR." + bytes(100)),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_strange_archives(samples: Any, case: str, attempt: Any) -> None:
    message, made = ARCHIVES[case]
    members = list(Forged(samples["dense"].data).members().items())
    assert message in attempt(made(members))


def test_members_that_share_bytes(samples: Any, attempt: Any) -> None:
    """A directory that lists one member over and over would multiply the file."""
    data = samples["dense"].data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        start, count = archive.start_dir, len(archive.infolist())
    directory = data[start:-22]
    for times in (2, 40):
        end = struct.pack(
            "<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory) * times, start, 0
        )
        assert isinstance(attempt(data[:start] + directory * times + end), str)


def test_bytes_in_front_do_not_matter(samples: Any, attempt: Any) -> None:
    sample = samples["lists"]
    assert not assert_refused_or_same(attempt, b"#!/bin/sh\n" + sample.data, sample)


# -- memory of the core ------------------------------------------------------------------------

BOUNDED = """
import resource, sys
from marginwise import ModelFileError, load
load(sys.argv[1])
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open("/proc/self/statm") as statm:
    limit = int(statm.read().split()[0]) * resource.getpagesize() + (4 << 30)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    load(sys.argv[2])
except ModelFileError as error:
    print(error)
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used
assert more < 64 << 10, f"{more} kB"
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units")
def test_a_wide_model_costs_no_memory_by_its_width(samples: Any, tmp_path: Path) -> None:
    forged = Forged(samples["lists"].data)
    forged.plan["features"] = forged.state["n_features_in_"] = 2**28
    (tmp_path / "wide.mwz").write_bytes(forged.seal())
    (tmp_path / "honest.mwz").write_bytes(samples["lists"].data)
    command = [sys.executable, "-c", BOUNDED, tmp_path / "honest.mwz", tmp_path / "wide.mwz"]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ}, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
