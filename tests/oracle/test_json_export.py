"""A predictor in plain Python that reads only the JSON agrees with the model."""

from __future__ import annotations

import json
import math
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginwise import ExactOneClassSVM, ExactSVC, KernelPerceptron, OnlineSVC
from marginwise.exchange import to_json
from tests.exchange_support import assert_agree
from tests.support import blobs

Row = list[float]
KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto")


# -- the predictor -------------------------------------------------------------------------------


def dot(a: Row, b: Row) -> float:
    return math.fsum(p * q for p, q in zip(a, b, strict=True))


def kernel(spec: dict[str, Any], a: Row, b: Row) -> float:
    ab, aa, bb = dot(a, b), dot(a, a), dot(b, b)
    match spec["name"]:
        case "rbf":
            return math.exp(-spec["gamma"] * sum((p - q) ** 2 for p, q in zip(a, b, strict=True)))
        case "poly":
            return (spec["gamma"] * ab + spec["coef0"]) ** spec["degree"]
        case "sigmoid":
            return math.tanh(spec["gamma"] * ab + spec["coef0"])
        case "cosine":
            return ab / math.sqrt(aa * bb) if aa * bb > 0 else 0.0
        case "tanimoto":
            return ab / (aa + bb - ab) if aa + bb - ab > 0 else 1.0
    return ab


def values(model: dict[str, Any], x: Row) -> Row:
    """The decision values of the binary problems."""
    if model["scaling"] is not None:
        shift, factor = model["scaling"]["shift"], model["scaling"]["factor"]
        x = [(v - s) * f for v, s, f in zip(x, shift, factor, strict=True)]
    if model["center"] is not None:
        x = [v - c for v, c in zip(x, model["center"], strict=True)]
    if model["coef"] is not None:
        return [dot(w, x) + b for w, b in zip(model["coef"], model["intercept"], strict=True)]
    K = [kernel(model["kernel"], s, x) for s in model["support_vectors"]]
    found = [dot(a, K) + b for a, b in zip(model["dual_coef"], model["intercept"], strict=True)]
    if model["multiclass"] == "one_class":
        found[0] -= model["total"] / 2 * kernel(model["kernel"], x, x)
    return found


def decision(model: dict[str, Any], x: Row) -> Row:
    f = values(model, x)
    if model["multiclass"] != "ovo":
        return f
    classes = range(len(model["classes"]))
    won, sums = [0 for _ in classes], [0.0 for _ in classes]
    for (a, b), value in zip(combinations(classes, 2), f, strict=True):
        won[b if value > 0 else a] += 1
        clipped = max(-1.0, min(1.0, value))
        sums[a] -= clipped
        sums[b] += clipped
    return [w + s / (3 * (abs(s) + 1)) for w, s in zip(won, sums, strict=True)]


def probability(curve: dict[str, Any], f: float) -> float:
    side = "above" if f > 0 else "below"
    sigmoid, share = curve["sigmoid"], curve["share"]
    constant = sigmoid["high"] if f > 0 else sigmoid["low"]
    z = sigmoid[side] * f + constant
    if sigmoid["clipped"]:
        z = max(z, 0.0) if f > 0 else min(z, 0.0)
    smooth = 1 / (1 + math.exp(-z))
    if share == 1:
        return smooth
    steps = float(np.interp(f, curve[side]["at"], curve[side]["value"]))
    return (1 - share) * steps + share * smooth


def probabilities(model: dict[str, Any], x: Row) -> Row:
    curves = model["probabilities"]["curves"]
    p = [probability(curve, f) for curve, f in zip(curves, values(model, x), strict=True)]
    if model["multiclass"] == "binary":
        return [1 - p[0], p[0]]
    if model["multiclass"] == "ovr":
        return [each / sum(p) for each in p]
    return coupled(p, len(model["classes"]))


def coupled(second: Row, classes: int) -> Row:
    """Minimize the sum of (r_ji p_i - r_ij p_j)^2, by equal steps of the fixed point of the paper.

    [wu2004], algorithm 2: p_t becomes (1 / Q_tt) (-sum of Q_tj p_j + p'Qp), then all are divided by
    their sum.
    """
    r = np.zeros((classes, classes))
    for (a, b), value in zip(combinations(range(classes), 2), second, strict=True):
        r[b, a] = min(max(value, 1e-7), 1 - 1e-7)
        r[a, b] = 1 - r[b, a]
    Q = -r * r.T
    Q[np.diag_indices(classes)] = (r**2).sum(axis=0)
    p = np.full(classes, 1 / classes)
    for _ in range(300):
        for t in range(classes):
            rest = Q[t] @ p - Q[t, t] * p[t]
            p[t] = (p @ Q @ p - rest) / Q[t, t]
            p /= p.sum()
    return p.tolist()


def label(model: dict[str, Any], x: Row) -> Any:
    scores = decision(model, x)
    if model["multiclass"] == "one_class":
        return 1 if scores[0] >= -1e-12 else -1
    if model["probabilities"] is not None and model["probabilities"]["decides"]:
        scores = probabilities(model, x)
    elif model["multiclass"] == "binary":
        return model["classes"][int(scores[0] > 0)]
    return model["classes"][scores.index(max(scores))]


# -- comparisons ---------------------------------------------------------------------------------


def assert_same(model: Any, X: Any) -> None:
    read = json.loads(to_json(model))
    found = np.array([decision(read, x) for x in X.tolist()])
    assert_agree(model, X, [label(read, x) for x in X.tolist()], found)


def positive_blobs(n: int, seed: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs(n, seed, classes, d=3)
    return np.abs(X + 4) / 4, y


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel(kernel: str, multiclass: str, seed: int) -> None:
    X, y = positive_blobs(160, seed, 3)
    model = OnlineSVC(
        kernel=kernel, gamma=0.7, coef0=0.3, multiclass=multiclass, random_state=0
    ).fit(X[:120], np.array(["a", "b", "ü"])[y[:120]])
    assert_same(model, X[120:])


@pytest.mark.parametrize("kernel", KERNELS)
def test_spheres(kernel: str, seed: int) -> None:
    X, _ = positive_blobs(100, seed, 2)
    model = ExactOneClassSVM(kernel=kernel, nu=0.2, gamma=0.7, coef0=0.1, degree=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the sigmoid is not definite
        model.fit(X[:60])
    assert_same(model, X[60:])


def test_scaled_centred_and_compressed_models(seed: int) -> None:
    X, y = positive_blobs(160, seed, 2)
    assert_same(make_pipeline(StandardScaler(), ExactSVC(gamma=0.3)).fit(X, y), X)
    assert_same(KernelPerceptron(kernel="poly", center=True, coef0=1.0).fit(X, y), X)
    assert_same(OnlineSVC(gamma=1.0).fit(X, y).compress(X, y, max_vectors=5), X)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(("classes", "multiclass"), [(2, "auto"), (3, "ovr"), (3, "ovo")])
def test_probabilities(calibration: str, classes: int, multiclass: str, seed: int) -> None:
    X, y = blobs(330, seed, classes)
    model = OnlineSVC(
        gamma=0.5, calibration=calibration, multiclass=multiclass, random_state=0
    ).fit(X[:300], y[:300])
    read = json.loads(to_json(model))
    found = np.array([probabilities(read, x) for x in X[300:].tolist()])
    assert np.abs(found - model.predict_proba(X[300:])).max() < 1e-3
    assert [label(read, x) for x in X[300:].tolist()] == model.predict(X[300:]).tolist()


def test_the_intercept_of_an_imported_model_is_the_one_that_it_was_given() -> None:
    X, y = blobs(120, 0, 2, 3)
    assert_same(OnlineSVC.from_svc(SVC(C=5, gamma=0.3).fit(X, y), X, y), X)


def test_the_file_has_the_text(tmp_path: Path) -> None:
    X, y = positive_blobs(50, 0, 2)
    model = OnlineSVC(gamma=1.0, random_state=0).fit(X, y)
    text = to_json(model, tmp_path / "model.json")
    assert (tmp_path / "model.json").read_text(encoding="utf-8") == text
    read = json.loads(text)
    assert read["format"] == "marginwise-model"
    assert read["version"] == 1
    assert read["feature_names"] is None
    assert np.allclose(read["support_vectors"], model.support_vectors_)
    assert read["dual_coef"] == model.dual_coef_.tolist()
