"""Pipelines become one ONNX model, which takes what the pipeline takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

from marginwise import ExactOneClassSVM, ExactSVC, GapSVC, OnlineSVC
from marginwise.exchange import register_converters, to_onnx
from tests.oracle.test_onnx import pictures, run_proto
from tests.support import blobs

pytest.importorskip("onnxruntime", reason="onnxruntime runs the models")
skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx converts the other steps")


def assert_same(model: Any, X: Any, found: dict[str, np.ndarray], tolerance: float = 1e-4) -> None:
    decision = model.decision_function(X)
    assert found["decision"].shape == decision.shape
    assert np.abs(found["decision"] - decision).max() <= tolerance * np.abs(decision).max()
    assert found["label"].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [MinMaxScaler(), PCA(3, random_state=0)],
        [SimpleImputer(), StandardScaler()],
        [],
    ],
    ids=["scaler", "pca", "imputer", "alone"],
)
def test_numeric_pipelines(steps: list[Any], dtype: str, seed: int) -> None:
    if dtype == "float64" and any(isinstance(step, SimpleImputer) for step in steps):
        pytest.skip("onnxruntime has no Imputer for doubles")
    X, y = blobs(300, seed, 3, d=5)
    X = X.astype(dtype)
    X[:, 1] += 50
    model = make_pipeline(*steps, OnlineSVC(C=2.0, gamma=0.3, random_state=0))
    model.fit(X[:200], np.array(["a", "b", "c"])[y[:200]])
    found = run_proto(to_onnx(model, dtype=dtype), X[200:])
    assert found["decision"].dtype == dtype
    assert_same(model, X[200:], found)


@pytest.mark.parametrize(
    "last",
    [
        OnlineSVC(gamma=0.3, calibration="sigmoid", multiclass="ovo", random_state=0),
        ExactSVC(kernel="poly", gamma=0.3, coef0=1.0),
        GapSVC(kernel="linear", center=True, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_skl2onnx_converts_every_estimator(last: Any, seed: int) -> None:
    X, y = blobs(300, seed, 3, d=5)
    X = X.astype(np.float32)
    model = make_pipeline(StandardScaler(), last).fit(X[:200], y[:200])
    register_converters()
    found = run_proto(skl2onnx.to_onnx(model, X[:1]), X[200:])
    assert_same(model, X[200:], found)
    if "probabilities" in found:
        assert np.abs(found["probabilities"] - model.predict_proba(X[200:])).max() < 1e-3
    alone = run_proto(skl2onnx.to_onnx(model[-1], X[:1]), model[:-1].transform(X[200:]))
    assert np.allclose(alone["decision"], found["decision"], rtol=1e-4, atol=1e-5)


def test_spheres(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(150, 4)).astype(np.float32)
    model = make_pipeline(StandardScaler(), ExactOneClassSVM(gamma=0.2)).fit(X[:100])
    found = run_proto(to_onnx(model), X[100:])
    assert_same(model, X[100:], found)


def test_pictures_of_a_pipeline_are_integers_too(seed: int) -> None:
    X, y = pictures(2400, seed, 0.0, 1.0)
    X[0, X.any(axis=0)] = 255  # so that columns are scaled alike
    model = make_pipeline(MinMaxScaler(), OnlineSVC(C=10.0, gamma=0.02, random_state=0))
    model.fit(X[:2000], y[:2000])
    converted = to_onnx(model)
    assert "If" in {node.op_type for node in converted.graph.node}
    assert_same(model, X[2000:], run_proto(converted, X[2000:]))
    plain = to_onnx(model, integers=False)
    assert "If" not in {node.op_type for node in plain.graph.node}
    assert_same(model, X[2000:], run_proto(plain, X[2000:]))


# -- columns of several types --------------------------------------------------------------------


def people(n: int, seed: int) -> tuple[Any, np.ndarray]:
    pandas = pytest.importorskip("pandas", reason="columns have names in data frames")
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {
            "age": rng.uniform(18, 80, n).astype(np.float32),
            "hours": rng.integers(1, 60, n),
            "job": rng.choice(["cook", "nurse", "clerk"], n),
        }
    )
    rich = (frame["age"] > 45) & (frame["job"] != "cook")
    return frame, rich.to_numpy().astype(int)


def fed(frame: Any) -> dict[str, np.ndarray]:
    """The columns of a data frame as onnxruntime takes them."""
    return {
        name: frame[[name]].to_numpy().astype(np.float32 if name == "age" else frame[name].dtype)
        if frame[name].dtype.kind in "fi"
        else frame[[name]].to_numpy().astype(str).astype(object)
        for name in frame.columns
    }


def test_data_frames(seed: int) -> None:
    frame, y = people(400, seed)
    columns = make_column_transformer(
        (StandardScaler(), ["age", "hours"]),
        (OneHotEncoder(handle_unknown="ignore"), ["job"]),
        sparse_threshold=0,
    )
    model = make_pipeline(columns, OnlineSVC(C=5.0, gamma=0.5, random_state=0))
    model.fit(frame[:300], y[:300])
    converted = to_onnx(model, sample=frame[:2])
    assert [entry.name for entry in converted.graph.input] == ["age", "hours", "job"]
    test = frame[300:].copy()
    test.iloc[0, 2] = "pilot"  # not seen before
    assert_same(model, test, run_proto(converted, fed(test)), tolerance=1e-3)


def test_text(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = np.array(
        [
            "free",
            "win",
            "prize",
            "call",
            "now",
            "cash",
            "meeting",
            "lunch",
            "report",
            "tomorrow",
            "home",
            "late",
        ]
    )
    spam = rng.integers(2, size=200)
    texts = [" ".join(rng.choice(words[:7] if s else words[5:], size=6)) for s in spam]
    model = make_pipeline(TfidfVectorizer(), OnlineSVC(kernel="linear", random_state=0))
    model.fit(texts[:150], spam[:150])
    options = {TfidfVectorizer: {"locale": "C"}}  # en_US need not be installed
    converted = to_onnx(model, sample=texts[:2], options=options)
    rows = np.array(texts[150:], dtype=object)
    assert_same(model, texts[150:], run_proto(converted, rows), tolerance=1e-3)


# -- what cannot be converted --------------------------------------------------------------------


def test_refusals_name_the_reason(seed: int) -> None:
    X, y = blobs(60, seed)
    svc = OnlineSVC(gamma=1.0, random_state=0)
    with pytest.raises(ValueError, match="last step of the pipeline is StandardScaler"):
        to_onnx(Pipeline([("scale", StandardScaler())]).fit(X))
    odd = make_pipeline(FunctionTransformer(np.cbrt), svc).fit(X, y)
    with pytest.raises(ValueError, match=r"cannot convert a step.*FunctionTransformer"):
        to_onnx(odd)
    text = make_pipeline(TfidfVectorizer(), svc).fit(["a bc", "de f"] * 3, [0, 1] * 3)
    with pytest.raises(ValueError, match="Pass some rows as sample"):
        to_onnx(text)
    named = ColumnTransformer([("all", StandardScaler(), [0, 1])])
    assert_same(
        (model := make_pipeline(named, svc).fit(X, y)),
        X.astype(np.float32),
        run_proto(to_onnx(model), X.astype(np.float32)),
        tolerance=1e-3,
    )
