"""Pipelines whose files are attacked: together they have every transformer of the table."""

from __future__ import annotations

import importlib.util
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold, chi2
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from tests.stress.subjects import make

N = 30
LABELS = np.arange(N) % 2
TABLES = all(importlib.util.find_spec(name) for name in ("marginwise.data", "pyarrow"))
VARIANTS = 4 + TABLES


def _numbers() -> tuple[list[Any], Any]:
    X = np.abs(np.random.default_rng(1).normal(size=(N, 3))) + 0.1
    parts = [
        StandardScaler(),
        MinMaxScaler(),
        RobustScaler(),
        QuantileTransformer(n_quantiles=5, random_state=0),
        PowerTransformer(),
        make_pipeline(PolynomialFeatures(3, include_bias=False), PCA(2, whiten=True)),
        make_pipeline(FunctionTransformer(), Binarizer(threshold=0.5)),
        "passthrough",
    ]
    union = FeatureUnion([(f"part{k}", part) for k, part in enumerate(parts)])
    return [union, PCA(4, random_state=0)], X


def _columns() -> tuple[list[Any], Any]:
    random = np.random.default_rng(2)
    words = np.array(["red", "green", "blue", "größe", None], dtype=object)
    frame = pd.DataFrame(
        {
            "age": np.where(np.arange(N) % 4, random.normal(size=N), np.nan),
            "height": random.normal(size=N),
            "colour": pd.Series(words[random.integers(5, size=N)], dtype=object),
            "code": random.integers(5, size=N),
            "mixed": pd.Series(
                np.array(["a", "b", np.nan], dtype=object)[random.integers(3, size=N)], dtype=object
            ),
            "flag": LABELS.astype(bool),
        }
    )
    groups = OneHotEncoder(
        max_categories=3, handle_unknown="infrequent_if_exist", drop="first", sparse_output=False
    )
    ordinal = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    )
    columns = ColumnTransformer(
        [
            ("numbers", SimpleImputer(add_indicator=True), ["age", "height"]),
            ("colours", OneHotEncoder(handle_unknown="ignore"), ["colour"]),
            ("codes", OneHotEncoder(drop="if_binary"), ["code"]),
            ("groups", groups, ["colour", "code"]),
            ("order", ordinal, ["mixed"]),
            ("none", "drop", ["code"]),
        ],
        remainder="passthrough",
        sparse_threshold=1.0,
    )
    return [columns], frame


def _texts() -> tuple[list[Any], Any]:
    words = np.array(
        [
            "the",
            "cat",
            "sat",
            "on",
            "a",
            "mat",
            "with",
            "one",
            "old",
            "dog",
            "and",
            "two",
            "black",
            "birds",
        ]
    )
    random = np.random.default_rng(3)
    X = [" ".join(random.choice(words, 6)) for _ in range(N)]
    weighted = make_pipeline(CountVectorizer(min_df=2), TfidfTransformer())
    union = FeatureUnion(
        [
            ("tfidf", TfidfVectorizer(sublinear_tf=True, stop_words=["the"])),
            ("counts", make_pipeline(weighted, SelectKBest(chi2, k=5))),
            ("hashes", HashingVectorizer(n_features=64)),
            (
                "topics",
                make_pipeline(CountVectorizer(analyzer="char"), TruncatedSVD(3, random_state=0)),
            ),
        ],
        transformer_weights={"counts": 0.5},
    )
    return [union], X


def _sparse() -> tuple[list[Any], Any]:
    random = np.random.default_rng(4)
    X = sp.csr_matrix(random.normal(size=(N, 4)) * (random.uniform(size=(N, 4)) < 0.6))
    union = FeatureUnion(
        [
            ("scaled", make_pipeline(MaxAbsScaler(), Normalizer())),
            ("products", PolynomialFeatures(2, interaction_only=True)),
            ("standard", make_pipeline(VarianceThreshold(), StandardScaler(with_mean=False))),
            ("gaps", SimpleImputer(strategy="constant", fill_value=1.0)),
        ]
    )
    dense = FunctionTransformer(accept_sparse=True)
    binned = make_pipeline(
        TruncatedSVD(2, random_state=0),
        KBinsDiscretizer(3, strategy="uniform", random_state=0),
    )
    columns = ColumnTransformer([("bins", binned, [0, 1, 2])], remainder=dense)
    return [union, columns], X


def _table() -> tuple[list[Any], Any]:
    from marginwise.data import TableEncoder

    random = np.random.default_rng(5)
    words = np.array(["ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen"])
    table = {
        "age": [None if k % 7 == 0 else float(x) for k, x in enumerate(random.normal(size=N))],
        "job": [None if k % 5 == 0 else f"größe {k % 3}" for k in range(N)],
        "flag": (LABELS > 0).tolist(),
        "note": [" ".join(random.choice(words, 4)) for _ in range(N)],
        "site": ["x"] * N,
    }
    return [TableEncoder(text=["note"], drop=["site"])], table


@cache
def pipeline(variant: int) -> tuple[Pipeline, Any]:
    """A fitted pipeline and the rows it was fitted to."""
    steps, X = (_numbers, _columns, _texts, _sparse, _table)[variant]()
    named = [(f"step{k}", step) for k, step in enumerate(steps)]
    made = Pipeline([*named, ("svm", make("OnlineSVC", C=2.0))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(X, LABELS), X
