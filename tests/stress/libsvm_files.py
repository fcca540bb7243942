"""LIBSVM files: model files and manifests with changed lines, tokens and bytes.

Invariant: reading raises DataError, whose message begins with the file and the line, or returns a
model that predicts finite values, satisfies the invariants of its state, and learns further rows
(or refuses them with a ValueError) within the time limit. Nothing else is raised, nothing hangs or
crashes, and memory stays bounded.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginwise import CompressedSVC
from marginwise.data import DataError
from marginwise.exchange import from_libsvm, to_libsvm
from tests.stress.harness import Options, Outcome
from tests.stress.mutations import (
    LETHAL,
    MOST_MEMORY,
    NUMBERS,
    OTHERS,
    SLOW,
    _memory,
    _mutate_document,
    _nudged,
    _peak,
)
from tests.stress.subjects import make, rows

KINDS = ("binary", "pairs", "sparse", "one class", "without bias", "manifest")
TOTAL = 10_000
BATCH = 1500
LIMIT = 30.0
PLACE = re.compile(r".*\.(?:\d|txt|json):\d+: \S")
WORDS = ["", "nan", "inf", "-inf", "1_0", "0x10", "x", "SV", ":", "1:", ":1", "1:1:1", "é", "\0"]
WORDS += ["9" * 400, "1" * 5000, "1e999", "-1e999", "1e-400", "0:1", "-1:1", "2147483648:1", "\r"]
WORDS += ["svm_type", "one_class", "nu_svc", "epsilon_svr", "precomputed", "linear", "sigmoid"]


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    kind = KINDS[case % len(KINDS)]
    outcome = Outcome()
    with tempfile.TemporaryDirectory(dir=_memory()) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = _write(original(kind), Path(folder), rng)
        before, began = _peak(), time.monotonic()
        try:
            _use(kind, path, outcome)
        except DataError as error:
            outcome.count(f"{kind} refused")
            if not PLACE.match(str(error)):
                outcome.violate(f"{kind}: a message without a place: {error}")
        except FileNotFoundError:  # a manifest may name any file beside it
            if kind != "manifest":
                raise
            outcome.count("manifest of an absent file")
    seconds, grown = time.monotonic() - began, _peak() - before
    if seconds > SLOW:
        outcome.violate(f"{kind}: {seconds:.1f} s")
    if grown > MOST_MEMORY:
        outcome.violate(f"{kind}: {grown / 2**20:.0f} MB")
    return outcome


def _use(kind: str, path: Path, outcome: Outcome) -> None:
    """Read a file, predict with the model and let it learn more."""
    model = from_libsvm(path)
    X: Any = np.random.default_rng(9).normal(size=(6, min(int(model.n_features_in_), 10**6)))
    if X.shape[1] < model.n_features_in_:
        outcome.count(f"{kind} too wide to predict")
        return
    _require_finite(model, X, kind, outcome)
    if isinstance(model, CompressedSVC):
        outcome.count(f"{kind} predicts")
        return
    _check(model, kind, outcome)
    try:
        model.partial_fit(X, model.classes_[np.arange(6) % len(model.classes_)])
    except ValueError:
        outcome.count(f"{kind} learns no more")
    _require_finite(model, X, kind, outcome)
    outcome.count(f"{kind} continues")


def _require_finite(model: Any, X: Any, kind: str, outcome: Outcome) -> None:
    if not np.isfinite(model.decision_function(X)).all():
        outcome.violate(f"{kind}: predicts values that are not finite")


def _check(model: Any, kind: str, outcome: Outcome) -> None:
    """Look at the invariants, by the rounding errors that the sizes of values allow."""
    state = model._engine.state()
    size = float(np.abs(model._engine.signs(state["labels"]).T - state["g"]).max(initial=1.0))
    total = float(np.abs(state["alpha"]).sum(axis=1).max(initial=1.0))
    try:
        model._engine.native.check(1e-5 * (1 + size + total) * (1 + size))
    except RuntimeError as error:
        outcome.violate(f"{kind}: {error}")


# -- originals ---------------------------------------------------------------------------------


@cache
def original(kind: str) -> dict[str, bytes]:
    """The files of a model by their names; the last one is to be read."""
    classes = 3 if kind in ("pairs", "manifest") else 2
    X, y = rows(np.random.default_rng(len(kind)), 40, classes)
    name = {"one class": "ExactOneClassSVM", "without bias": "GapSVC"}.get(kind, "OnlineSVC")
    model = make(name, C=2.0, nu=0.3, multiclass="ovr" if kind == "manifest" else "ovo")
    data: Any = X
    if kind == "sparse":
        data = sp.csr_array(np.hstack([X * (np.abs(X) > 1), np.zeros((40, 60))]))
    model.fit(data, np.array(["a", "b", "c"])[y] if kind == "manifest" else y)
    with tempfile.TemporaryDirectory() as folder:
        paths = to_libsvm(model, Path(folder, "model.txt"))
        _use(kind, paths[-1], Outcome())
        return {path.name: path.read_bytes() for path in paths}


def _write(files: dict[str, bytes], folder: Path, rng: np.random.Generator) -> Path:
    """Write files of which one has one to three mutations, and return what is read."""
    files = dict(files)
    names = list(files)
    name = names[int(rng.integers(len(names)))]
    for _ in range(int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        if name.endswith("json") and rng.random() < 0.8:
            files[name] = _mutated_manifest(files[name], rng)
        else:
            files[name] = mutated(files[name], rng)
    if len(names) > 1 and name != names[-1] and rng.random() < 0.9:
        files[names[-1]] = _signed(files[names[-1]], name, files[name])
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder / names[-1]


def _signed(manifest: bytes, name: str, content: bytes) -> bytes:
    """Return a manifest with the checksum of a file as it is now."""
    said = json.loads(manifest)
    for part in said["files"]:
        if part["file"] == name:
            part["sha256"] = hashlib.sha256(content).hexdigest()
    return json.dumps(said).encode()


def _mutated_manifest(content: bytes, rng: np.random.Generator) -> bytes:
    try:
        document = {"state": json.loads(content)}
        if not isinstance(document["state"], dict) or not document["state"]:
            return content
        _mutate_document(document, rng)
        return json.dumps(document["state"]).encode()
    except (ValueError, UnicodeEncodeError):
        return content


# -- mutating ----------------------------------------------------------------------------------


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one token, line or byte of a file."""
    lines = content.split(b"\n")
    at = int(rng.integers(len(lines)))
    way = rng.random()
    if way < 0.55:
        lines[at] = _with_token(lines[at], rng)
    elif way < 0.62:
        del lines[at]
    elif way < 0.69:
        lines.insert(at, lines[int(rng.integers(len(lines)))])
    elif way < 0.76:
        other = int(rng.integers(len(lines)))
        lines[at], lines[other] = lines[other], lines[at]
    elif way < 0.82:
        lines = lines[:at]
    elif way < 0.85:
        lines[at] = b""
    else:
        return _with_bytes(content, rng)
    return b"\n".join(lines)


def _with_token(line: bytes, rng: np.random.Generator) -> bytes:
    """Change, remove or repeat one token of a line."""
    tokens = line.split(b" ")
    at = int(rng.integers(len(tokens)))
    way = rng.random()
    if way < 0.1:
        del tokens[at]
    elif way < 0.2:
        tokens.insert(at, tokens[at])
    elif way < 0.4:
        tokens[at] = WORDS[int(rng.integers(len(WORDS)))].encode()
    else:
        head, colon, tail = tokens[at].partition(b":")
        number = _number(tail if colon else head, rng)
        if colon and way < 0.85:
            tokens[at] = head + colon + number
        elif colon:
            tokens[at] = number + colon + tail
        else:
            tokens[at] = number
    return b" ".join(tokens)


def _number(old: bytes, rng: np.random.Generator) -> bytes:
    """Another number, in half of the cases one that is near."""
    try:
        value = float(old)
    except ValueError:
        value = np.nan
    if np.isfinite(value) and rng.random() < 0.5:
        return f"{_nudged(value, rng):.17g}".encode()
    choices = NUMBERS + LETHAL + [x for x in OTHERS if isinstance(x, str) and x.isascii()]
    return str(choices[int(rng.integers(len(choices)))]).encode()


def _with_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Change, remove or insert a few bytes anywhere."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(changed) + 1))
        way = rng.random()
        if way < 0.5 and at < len(changed):
            changed[at] = int(rng.integers(256))
        elif way < 0.75:
            del changed[at : at + int(rng.integers(1, 20))]
        else:
            changed[at:at] = rng.bytes(int(rng.integers(1, 8)))
    return bytes(changed)
