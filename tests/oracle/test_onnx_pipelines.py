"""Pipelines become one ONNX model, which takes what the pipeline takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

from marginwise import ExactOneClassSVM, ExactSVC, GapSVC, OnlineSVC
from marginwise.data import StreamPipeline, TableEncoder
from marginwise.exchange import register_converters, to_onnx
from tests.exchange_support import assert_agree
from tests.oracle.test_onnx import pictures, run_proto
from tests.support import blobs

pytest.importorskip("onnxruntime", reason="onnxruntime runs the models")
skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx converts the other steps")


def assert_same(model: Any, X: Any, found: dict[str, np.ndarray], tolerance: float = 1e-4) -> None:
    assert found["decision"].shape == model.decision_function(X).shape
    assert_agree(model, X, found["label"], found["decision"], tolerance)


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


@pytest.mark.parametrize("norm", ["l1", "l2", None])
@pytest.mark.parametrize("sublinear", [False, True])
def test_text(sublinear: bool, norm: Any, seed: int) -> None:
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
    texts[160] = "nothing that occurred before"
    terms = TfidfVectorizer(sublinear_tf=sublinear, norm=norm)
    model = make_pipeline(terms, OnlineSVC(kernel="linear", random_state=0))
    model.fit(texts[:150], spam[:150])
    converted = to_onnx(model, sample=texts[:2])
    texts[161] = texts[161].upper()
    rows = np.array(texts[150:], dtype=object)
    assert_same(model, texts[150:], run_proto(converted, rows), tolerance=1e-3)


@pytest.mark.parametrize("options", [None, {TfidfVectorizer: {"locale": "C"}}])
def test_the_locale_follows_the_terms(options: Any) -> None:
    """ASCII needs no locale; other letters do, unless the options say otherwise."""
    texts, y = ["schön gut", "gar nicht", "gut schön", "nicht gar"], [1, 0, 1, 0]
    model = make_pipeline(TfidfVectorizer(), OnlineSVC(gamma=1.0, random_state=0)).fit(texts, y)
    converted = to_onnx(model, sample=texts, options=options)
    (normalizer,) = [n for n in converted.graph.node if n.op_type == "StringNormalizer"]
    found = [a.s.decode() for a in normalizer.attribute if a.name == "locale"]
    assert (found == ["C"]) == (options is not None)


def test_counts_and_their_logarithms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.7, size=(200, 12)).astype(np.float32)
    y = counts[:, :6].sum(axis=1) > counts[:, 6:].sum(axis=1)
    model = make_pipeline(TfidfTransformer(sublinear_tf=True), OnlineSVC(gamma=1.0)).fit(counts, y)
    assert_same(model, counts, run_proto(to_onnx(model), counts))
    hidden = make_pipeline(make_pipeline(TfidfTransformer(sublinear_tf=True)), OnlineSVC(gamma=1.0))
    with pytest.raises(ValueError, match=r"the step 'pipeline' contains .* sublinear_tf=True"):
        to_onnx(hidden.fit(counts, y))


# -- tables --------------------------------------------------------------------------------------


def visits(n: int, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """A table with columns of every kind, some values of which are missing."""
    rng = np.random.default_rng(seed)
    days = rng.uniform(18_000, 20_000, n)
    table = {
        "plan": rng.choice(["a", "b", "c", None], n).tolist(),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(18, 80, n)),
        "note": [" ".join(rng.choice(WORDS, size=5)) for _ in range(n)],
        "day": np.array(days * 86_400, dtype="datetime64[s]"),
        "vector": rng.normal(size=(n, 3)).astype(np.float32),
        "site": ["x"] * n,  # constant, and so not an input
        "paid": rng.random(n) < 0.5,
        "size": rng.integers(0, 9, n),
    }
    return table, (np.nan_to_num(table["age"], nan=50) + 5 * table["size"] > 60).astype(int)


def columns_of(table: dict[str, Any], dtype: str) -> dict[str, np.ndarray]:
    """The columns as the inputs of a graph: missing strings are empty, dates are days."""
    found = {}
    for name in ("plan", "note"):
        found[name] = np.array([text or "" for text in table[name]], dtype=object)[:, None]
    for name in ("age", "paid", "size"):
        found[name] = np.asarray(table[name], dtype=dtype)[:, None]
    found["day"] = (table["day"].astype(np.float64) / 86_400).astype(dtype)[:, None]
    found["vector"] = table["vector"].astype(dtype)
    return found


WORDS = np.array(["late", "order", "paid", "refund", "never", "again", "thanks", "good"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tables(dtype: str, seed: int) -> None:
    pytest.importorskip("pyarrow", reason="tables are read with pyarrow")
    table, y = visits(300, seed)
    fitted = {name: column[:200] for name, column in table.items()}
    fitted["plan"][0], fitted["age"][:20] = "unknown", -99.9
    encoder = TableEncoder(text=["note"], categorical=["plan"], missing=["unknown", "-99.9"])
    model = StreamPipeline([("encode", encoder), ("svc", OnlineSVC(C=2.0, random_state=0))])
    model.fit(fitted, y[:200])
    assert set(model[0].kinds_) >= {"numeric", "boolean", "date", "categorical", "text", "vector"}
    converted = to_onnx(model, dtype=dtype)
    names = [entry.name for entry in converted.graph.input]
    assert names == ["plan", "age", "note", "day", "vector", "paid", "size"]
    test = {name: column[200:] for name, column in table.items()}
    test["plan"][:2], test["age"][2:4] = ("unseen", "unknown"), -99.9
    found = run_proto(converted, columns_of(test, dtype))
    assert found["decision"].dtype == dtype
    assert_same(model, test, found, tolerance=1e-3)


def test_tables_that_cannot_be_converted() -> None:
    pytest.importorskip("pyarrow", reason="tables are read with pyarrow")
    table = {"age": [20.0, 30.0, 40.0, 50.0], "job": ["a", "b", "a", "b"]}
    strict = make_pipeline(TableEncoder(unseen="error"), OnlineSVC(gamma=1.0))
    with pytest.raises(ValueError, match=r"unseen='error' cannot be converted.*unseen='ignore'"):
        to_onnx(strict.fit(table, [0, 1, 1, 0]))
    texts = {"note": ["late again", "paid late", "no order", "never paid"]}
    tokens = make_pipeline(TableEncoder(text=["note"], missing=["late"]), OnlineSVC(gamma=1.0))
    with pytest.raises(ValueError, match="column 'note' is text with words of 'late'"):
        to_onnx(tokens.fit(texts, [0, 1, 1, 0]))


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
