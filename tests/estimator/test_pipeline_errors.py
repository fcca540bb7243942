"""What `save` refuses of a pipeline, and that the message names the part and says what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import NMF, PCA
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from marginwise import OnlineSVC, load, save

X = np.abs(np.random.RandomState(0).standard_normal((20, 3)))
Y = np.arange(20) % 2


class FooTransformer(TransformerMixin, BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> FooTransformer:
        return self

    def transform(self, X: Any) -> Any:
        return X


class StandardScalerOfMine(StandardScaler):
    pass


def ends_in(model: Any) -> Pipeline:
    return Pipeline([("scale", StandardScaler()), ("end", model)])


def begins_with(step: Any) -> Pipeline:
    return Pipeline([("x", step), ("svm", OnlineSVC(random_state=0))])


def by_columns(step: Any, columns: Any) -> Pipeline:
    return begins_with(ColumnTransformer([("inner", step, columns)]))


def marked() -> Pipeline:
    pipeline = begins_with(StandardScaler()).fit(X, Y)
    pipeline[0].note = "mine"
    return pipeline


def changed_after_fit() -> Pipeline:
    pipeline = begins_with(StandardScaler(with_mean=False, with_std=False)).fit(X, Y)
    pipeline[0].with_std = True
    return pipeline


def shortened() -> Pipeline:
    pipeline = begins_with(PCA(2)).fit(X, Y)
    pipeline.steps.insert(0, ("first", StandardScaler().fit(X[:, :2])))
    return pipeline


def mixed_up() -> Pipeline:
    pipeline = begins_with(ColumnTransformer([("a", StandardScaler(), [0])])).fit(X, Y)
    pipeline[0].output_indices_ = {"a": slice(0, 2)}
    return pipeline


def with_decimals() -> Pipeline:
    from decimal import Decimal

    words = np.array([[Decimal(1)], [Decimal(2)]] * 10, dtype=object)
    return begins_with(OneHotEncoder()).fit(words, Y)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    # classes
    "class": (
        lambda: begins_with(FooTransformer()),
        r"step 'x' is a FooTransformer, which model files cannot hold; they hold Binarizer, .*"
        r"StandardScaler, .* and as the last step one of .*OnlineSVC",
    ),
    "subclass": (lambda: begins_with(StandardScalerOfMine()), "step 'x' is a StandardScalerOfMine"),
    "foreign": (lambda: begins_with(Nystroem()), "step 'x' is a Nystroem"),
    "nested": (
        lambda: by_columns(make_pipeline(NMF()), [0]),
        "step 'x' > 'inner' > 'nmf' is a NMF",
    ),
    "in a union": (
        lambda: begins_with(FeatureUnion([("k", KMeans())])),
        "step 'x' > 'k' is a KMeans",
    ),
    "remainder": (
        lambda: begins_with(ColumnTransformer([], remainder=NMF())),
        "step 'x' > 'remainder' is a NMF",
    ),
    # ends
    "no model": (lambda: ends_in(PCA()), "it ends in PCA; expected one of .*OnlineSVC"),
    "passthrough": (lambda: ends_in("passthrough"), "it ends in passthrough"),
    "SVC": (lambda: ends_in(SVC()), "step 'end' is a SVC"),
    "regression": (lambda: ends_in(LogisticRegression()), "step 'end' is a LogisticRegression"),
    "empty": (lambda: Pipeline([]), "it ends in None"),
    "model first": (
        lambda: Pipeline([("a", OnlineSVC()), ("b", OnlineSVC())]),
        "has OnlineSVC as 'a', which must be the last step",
    ),
    "model in a union": (
        lambda: begins_with(FeatureUnion([("m", OnlineSVC())])),
        "has OnlineSVC as 'm', which must be the last step",
    ),
    "kernel": (
        lambda: ends_in(OnlineSVC(kernel=lambda A, B: A @ B.T)),
        r"step 'end' \(OnlineSVC\): its kernel is a Python function",
    ),
    "bad parameter": (
        lambda: ends_in(OnlineSVC(C=-1.0)),
        r"step 'end' \(OnlineSVC\): C must be a number above 0",
    ),
    # functions
    "function": (
        lambda: begins_with(FunctionTransformer(np.log1p)),
        r"step 'x' \(FunctionTransformer\): func is the function log1p, and files contain no code",
    ),
    "tokenizer": (
        lambda: begins_with(CountVectorizer(tokenizer=str.split)),
        "tokenizer is the function split, and files contain no code",
    ),
    "analyzer": (
        lambda: begins_with(TfidfVectorizer(analyzer=lambda text: text.split())),
        "analyzer is the function <lambda>",
    ),
    "preprocessor": (
        lambda: begins_with(HashingVectorizer(preprocessor=str.lower)),
        "preprocessor is the function lower",
    ),
    "strategy": (lambda: begins_with(SimpleImputer(strategy=np.min)), "strategy is the function"),
    "scores": (
        lambda: begins_with(SelectKBest(lambda X, y: X.sum(axis=0))),
        "score_func is the function <lambda>",
    ),
    "columns": (
        lambda: by_columns(StandardScaler(), make_column_selector("a")),
        "transformers has columns of 'inner' that are refused: is the function",
    ),
    "names": (
        lambda: begins_with(OneHotEncoder(feature_name_combiner=lambda a, b: a)),
        "feature_name_combiner is the function",
    ),
    # other values
    "memory": (
        lambda: make_pipeline(StandardScaler(), OnlineSVC(), memory="/tmp"),
        "memory must be None, not '/tmp'",
    ),
    "file names": (
        lambda: begins_with(CountVectorizer(input="filename")),
        "input must be 'content', not 'filename'",
    ),
    "stop words": (
        lambda: begins_with(CountVectorizer(stop_words=frozenset({"a"}))),
        "stop_words must be None or 'english' or a list of strings",
    ),
    "missing": (
        lambda: begins_with(SimpleImputer(missing_values=pd.NA)),
        "missing_values must be a number, a string, NaN or None",
    ),
    "jobs": (
        lambda: begins_with(FeatureUnion([("s", StandardScaler())], n_jobs=1000)),
        "n_jobs must be None or an integer other than 0, at most 32",
    ),
    "type": (lambda: begins_with(OneHotEncoder(dtype=complex)), "dtype must be a NumPy type"),
    "names of steps": (
        lambda: Pipeline([("a__b", StandardScaler()), ("svm", OnlineSVC())]),
        "steps has names that contain '__'",
    ),
    "objects": (with_decimals, r"\(OneHotEncoder\): categories_ contains a Decimal"),
    # what was changed after fitting
    "attribute of the user's": (marked, r"step 'x' \(StandardScaler\): .* does not know 'note'"),
    "parameter changed": (changed_after_fit, "scale_ must be there with with_std"),
    "widths": (shortened, "'x' expects 3 features, but gets 2"),
    "inconsistent": (mixed_up, "output_indices_ of ColumnTransformer is not as it would be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_saved_is_named(case: str, tmp_path: Path) -> None:
    made, message = REFUSED[case]
    pipeline = made()
    expected = rf"^this Pipeline cannot be saved: .*{message}.* or pickle the pipeline\.$"
    with pytest.raises(ValueError, match=expected):
        save(pipeline, tmp_path / "m.mwz")
    assert os.listdir(tmp_path) == []


def test_bare_transformers_and_subclasses_are_refused(tmp_path: Path) -> None:
    class Mine(Pipeline):
        pass

    for model in (StandardScaler(), Mine([("svm", OnlineSVC())])):
        expected = f"a {type(model).__name__} cannot be saved; .* or a Pipeline that ends in one"
        with pytest.raises(ValueError, match=expected):
            save(model, tmp_path / "m.mwz")


def test_too_many_arrays_are_refused(tmp_path: Path) -> None:
    union = FeatureUnion([(f"s{k}", StandardScaler()) for k in range(350)])
    pipeline = make_pipeline(union, OnlineSVC(random_state=0)).fit(X, Y)
    with pytest.raises(ValueError, match=r"it has \d+ arrays, and files hold fewer than 1024"):
        save(pipeline, tmp_path / "m.mwz")


def test_a_missing_column_is_named_after_loading(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    columns = ColumnTransformer([("scale", StandardScaler(), ["age", "weight"])])
    save(make_pipeline(columns, OnlineSVC(random_state=0)).fit(frame, Y), tmp_path / "m.mwz")
    again = load(tmp_path / "m.mwz")
    with pytest.raises(ValueError, match=r"columns are missing: \{'age'\}"):
        again.predict(frame[["height", "weight"]])
    with pytest.raises(ValueError, match="expecting 3 features"):
        again.predict(X[:, :2])
