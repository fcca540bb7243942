"""A pipeline that was saved and loaded is the same pipeline, and continues in the same way.

For every transformer of the table: what comes out of the transformers and every decision value are
equal bit for bit, parameters are equal, and the last step learns on as if it had never been stored.
"""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import (
    SelectKBest,
    VarianceThreshold,
    chi2,
    f_classif,
    mutual_info_classif,
)
from sklearn.impute import MissingIndicator, SimpleImputer
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

from marginwise import (
    CompressedSVC,
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    OnlineSVCCV,
    TrackingSVC,
    load,
    save,
)
from marginwise._files.format import estimators
from marginwise._files.pipelines.codec import Codec, difference
from marginwise._files.pipelines.table import TABLE

N = 60
RNG = np.random.RandomState(0)
Y = np.arange(N) % 2
NUMBERS = np.abs(RNG.standard_normal((N, 4))) + 0.1 + Y[:, None]
SINGLE = NUMBERS.astype(np.float32)
GAPS = np.where(RNG.uniform(size=(N, 4)) < 0.1, np.nan, NUMBERS)
SPARSE = sp.csr_matrix(np.where(NUMBERS > 1, NUMBERS, 0))
WORDS = RNG.choice(np.array(["red", "green", "bleu ciel", "größe", "", None], dtype=object), (N, 2))
MIXED = RNG.choice(np.array(["a", "b", np.nan], dtype=object), (N, 2))
CODES = RNG.randint(4, size=(N, 3))
TEXTS = [f"the {a} cat of {b} and word{k % 7}" for k, (a, b) in enumerate(WORDS.tolist())]
FRAME = pd.DataFrame(
    {
        "age": GAPS[:, 0],
        "größe": NUMBERS[:, 1],
        "colour": pd.Series(WORDS[:, 0], dtype=object),
        "kind": pd.Categorical(np.where(Y, "x", "y")),
        "text": pd.Series(TEXTS, dtype=object),
        "flag": Y.astype(bool),
    }
)


def numeric(*steps: Any, X: Any = NUMBERS) -> tuple[list[Any], Any]:
    return list(steps), X


def by_columns(*parts: Any, X: Any = NUMBERS, **options: Any) -> tuple[list[Any], Any]:
    return [ColumnTransformer(list(parts), **options)], X


CASES: dict[str, Callable[[], tuple[list[Any], Any]]] = {
    # scalers
    "StandardScaler": lambda: numeric(StandardScaler()),
    "StandardScaler float32": lambda: numeric(StandardScaler(), X=SINGLE),
    "StandardScaler gaps": lambda: numeric(StandardScaler(), SimpleImputer(), X=GAPS),
    "StandardScaler sparse": lambda: numeric(StandardScaler(with_mean=False), X=SPARSE),
    "StandardScaler off": lambda: numeric(StandardScaler(with_mean=False, with_std=False)),
    "MinMaxScaler": lambda: numeric(MinMaxScaler((-1.0, 2.0), clip=True)),
    "MaxAbsScaler": lambda: numeric(MaxAbsScaler(), X=SPARSE),
    "RobustScaler": lambda: numeric(RobustScaler(quantile_range=(10.0, 90.0), unit_variance=True)),
    "RobustScaler off": lambda: numeric(RobustScaler(with_centering=False, with_scaling=False)),
    "Normalizer": lambda: numeric(Normalizer("l1"), X=SPARSE),
    "Binarizer": lambda: numeric(StandardScaler(), Binarizer(threshold=0.5)),
    "QuantileTransformer": lambda: numeric(
        QuantileTransformer(n_quantiles=20, output_distribution="normal", random_state=0)
    ),
    "PowerTransformer": lambda: numeric(PowerTransformer()),
    "PowerTransformer plain": lambda: numeric(PowerTransformer("box-cox", standardize=False)),
    "PolynomialFeatures": lambda: numeric(PolynomialFeatures((2, 3), include_bias=False)),
    "PolynomialFeatures sparse": lambda: numeric(
        PolynomialFeatures(2, interaction_only=True), X=SPARSE
    ),
    "KBinsDiscretizer": lambda: (
        numeric(KBinsDiscretizer(4, quantile_method="linear"))
        if "quantile_method" in KBinsDiscretizer().get_params()
        else numeric(KBinsDiscretizer(4))
    ),
    "KBinsDiscretizer ordinal": lambda: numeric(
        KBinsDiscretizer([2, 3, 4, 5], encode="ordinal", strategy="uniform", dtype=np.float32)
    ),
    "FunctionTransformer": lambda: numeric(FunctionTransformer(), "passthrough"),
    # categories
    "OneHotEncoder": lambda: numeric(OneHotEncoder(handle_unknown="ignore"), X=WORDS),
    "OneHotEncoder dense": lambda: numeric(
        OneHotEncoder(sparse_output=False, dtype=np.float32), X=MIXED
    ),
    "OneHotEncoder integers": lambda: numeric(OneHotEncoder(drop="first"), X=CODES),
    "OneHotEncoder strings": lambda: numeric(OneHotEncoder(dtype=float), X=CODES.astype(str)),
    "OneHotEncoder floats": lambda: numeric(OneHotEncoder(dtype="float32"), X=GAPS.round()),
    "OneHotEncoder if binary": lambda: numeric(OneHotEncoder(drop="if_binary"), X=MIXED),
    "OneHotEncoder drops": lambda: numeric(OneHotEncoder(drop=["red", None]), X=WORDS),
    "OneHotEncoder groups": lambda: numeric(
        OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"), X=WORDS
    ),
    "OneHotEncoder groups and drops": lambda: numeric(
        OneHotEncoder(min_frequency=0.2, drop="first"), X=WORDS
    ),
    "OneHotEncoder given": lambda: numeric(
        OneHotEncoder(categories=[["a", "b", np.nan], ["b", "a", "c", np.nan]]), X=MIXED
    ),
    "OneHotEncoder given arrays": lambda: numeric(
        OneHotEncoder(categories=[np.arange(5)] * 3), X=CODES
    ),
    "OrdinalEncoder": lambda: numeric(OrdinalEncoder(encoded_missing_value=-1), X=MIXED),
    "OrdinalEncoder groups": lambda: numeric(
        OrdinalEncoder(
            max_categories=2,
            handle_unknown="use_encoded_value",
            unknown_value=np.nan,
            encoded_missing_value=-2,
        ),
        X=MIXED,
    ),
    # missing values
    "SimpleImputer": lambda: numeric(SimpleImputer(strategy="median", add_indicator=True), X=GAPS),
    "SimpleImputer empty": lambda: numeric(
        SimpleImputer(keep_empty_features=True), X=np.c_[GAPS, np.full(N, np.nan)]
    ),
    "SimpleImputer words": lambda: numeric(
        SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder(), X=WORDS
    ),
    "SimpleImputer constant": lambda: numeric(
        SimpleImputer(strategy="constant", fill_value="none", missing_values=None),
        OneHotEncoder(),
        X=WORDS,
    ),
    "SimpleImputer zeros": lambda: numeric(SimpleImputer(strategy="constant"), X=GAPS),
    "MissingIndicator": lambda: numeric(MissingIndicator(), X=GAPS),
    # text
    "CountVectorizer": lambda: numeric(CountVectorizer(ngram_range=(1, 2)), X=TEXTS),
    "CountVectorizer few": lambda: numeric(
        CountVectorizer(max_features=5, stop_words=["the", "of"], min_df=2), X=TEXTS
    ),
    "CountVectorizer given": lambda: numeric(
        CountVectorizer(vocabulary={"cat": 1, "red": 0}), X=TEXTS
    ),
    "CountVectorizer list": lambda: numeric(CountVectorizer(vocabulary=["cat", "red"]), X=TEXTS),
    "TfidfTransformer": lambda: numeric(CountVectorizer(), TfidfTransformer(), X=TEXTS),
    "TfidfTransformer off": lambda: numeric(
        CountVectorizer(), TfidfTransformer(use_idf=False, norm=None), X=TEXTS
    ),
    "TfidfVectorizer": lambda: numeric(
        TfidfVectorizer(sublinear_tf=True, dtype=np.float32, stop_words="english"), X=TEXTS
    ),
    "TfidfVectorizer characters": lambda: numeric(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), strip_accents="unicode"), X=TEXTS
    ),
    "HashingVectorizer": lambda: numeric(HashingVectorizer(n_features=2**12), X=TEXTS),
    # fewer features
    "PCA": lambda: numeric(PCA(2)),
    "PCA share": lambda: numeric(PCA(0.9, whiten=True, svd_solver="full"), X=SINGLE),
    "PCA random": lambda: numeric(
        PCA(2, svd_solver="randomized", random_state=np.random.RandomState(3))
    ),
    "TruncatedSVD": lambda: numeric(TruncatedSVD(2, random_state=0), X=SPARSE),
    "VarianceThreshold": lambda: numeric(VarianceThreshold(0.01)),
    "SelectKBest chi2": lambda: numeric(SelectKBest(chi2, k=2), X=SPARSE),
    "SelectKBest f_classif": lambda: numeric(SelectKBest(f_classif, k="all")),
    "SelectKBest mutual": lambda: numeric(SelectKBest(mutual_info_classif, k=1)),
    # compositions
    "columns by number": lambda: by_columns(
        ("a", StandardScaler(), [0, -1]), ("b", "drop", [1]), remainder="passthrough"
    ),
    "columns by slice": lambda: by_columns(
        ("a", StandardScaler(), slice(0, 2)), remainder=MinMaxScaler()
    ),
    "columns by mask": lambda: by_columns(
        ("a", StandardScaler(), [True, False, True, False]),
        ("b", "passthrough", np.array([False, True, False, False])),
    ),
    "columns in an array": lambda: by_columns(
        ("a", StandardScaler(), np.array([0, 3])), ("b", MinMaxScaler(), (1, 2))
    ),
    "no columns": lambda: by_columns(
        ("a", StandardScaler(), []), ("b", MinMaxScaler(), [0, 1]), transformer_weights={"b": 2.0}
    ),
    "columns by name": lambda: by_columns(
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "größe"]),
        ("words", OneHotEncoder(handle_unknown="ignore"), ["colour", "kind"]),
        ("text", TfidfVectorizer(), "text"),
        X=FRAME,
        sparse_threshold=0.9,
    ),
    "columns by index": lambda: by_columns(
        ("numbers", SimpleImputer(), FRAME.columns[:2]),
        remainder="drop",
        X=FRAME,
        verbose_feature_names_out=False,
    ),
    "columns by slice of names": lambda: by_columns(
        ("numbers", SimpleImputer(), slice("age", "größe")),
        ("flag", "passthrough", ["flag"]),
        X=FRAME,
    ),
    "remainder by name": lambda: by_columns(
        ("words", OneHotEncoder(), ["colour", "kind"]),
        ("text", "drop", ["text"]),
        remainder=make_pipeline(SimpleImputer(), PCA(1)),
        X=FRAME,
    ),
    "union": lambda: numeric(
        FeatureUnion(
            [("a", StandardScaler()), ("b", PCA(1)), ("c", "drop"), ("d", "passthrough")],
            transformer_weights={"b": 0.5},
        )
    ),
    "union of texts": lambda: numeric(
        FeatureUnion([("w", TfidfVectorizer()), ("c", CountVectorizer(analyzer="char"))]), X=TEXTS
    ),
    "nested": lambda: numeric(
        Pipeline([("in", Pipeline([("deep", StandardScaler()), ("none", None)])), ("pca", PCA(3))])
    ),
    "data frame": lambda: numeric(
        SimpleImputer().set_output(transform="pandas"), StandardScaler(), X=FRAME[["age", "größe"]]
    ),
    "columns to a data frame": lambda: numeric(
        ColumnTransformer([("a", SimpleImputer(), ["age"])], remainder=StandardScaler()).set_output(
            transform="pandas"
        ),
        X=FRAME[["age", "größe"]],
    ),
}


def made(case: str, model: Any = None) -> tuple[Pipeline, Any]:
    steps, X = CASES[case]()
    model = OnlineSVC(C=2.0, gamma=0.5, random_state=0) if model is None else model
    named = [(f"step {number}", step) for number, step in enumerate(steps)]
    return Pipeline([*named, ("svm", model)]), X


def by_file(pipeline: Pipeline, folder: Path, kind: type = Pipeline) -> Pipeline:
    save(pipeline, folder / "pipeline.mwz")
    again = load(folder / "pipeline.mwz")
    assert type(again) is kind
    return again


def transformed(pipeline: Pipeline, X: Any) -> Any:
    for _, step in pipeline.steps[:-1]:
        X = X if step == "passthrough" else step.transform(X)
    return X


def assert_equal(one: Any, two: Any) -> None:
    assert type(one) is type(two)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two, check_exact=True)
    elif sp.issparse(one):
        assert one.dtype == two.dtype
        assert one.shape == two.shape
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part))
    else:
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_transforms_predicts_and_continues_the_same(case: str, tmp_path: Path) -> None:
    pipeline, X = made(case)
    pipeline.fit(X, Y)
    again = by_file(pipeline, tmp_path)
    assert difference(pipeline, again) is None
    assert_equal(transformed(pipeline, X), transformed(again, X))
    np.testing.assert_array_equal(pipeline.decision_function(X), again.decision_function(X))
    np.testing.assert_array_equal(pipeline.predict(X), again.predict(X))
    for one in (pipeline, again):
        one[-1].partial_fit(transformed(one, X), 1 - Y)
    np.testing.assert_array_equal(pipeline.decision_function(X), again.decision_function(X))
    refitted = clone(again).fit(X, Y)
    np.testing.assert_array_equal(
        refitted.decision_function(X), clone(pipeline).fit(X, Y).decision_function(X)
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_pipelines_that_are_not_fitted(case: str, tmp_path: Path) -> None:
    pipeline, X = made(case)
    again = by_file(pipeline, tmp_path)
    assert difference(pipeline, again) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            again.fit(X, Y).decision_function(X), pipeline.fit(X, Y).decision_function(X)
        )


# -- last steps --------------------------------------------------------------------------------


LAST = {
    "OnlineSVC": lambda: OnlineSVC(gamma=1.0, calibration="sigmoid", random_state=0),
    "OnlineSVCCV": lambda: OnlineSVCCV(Cs=[1.0, 10.0], gammas=[0.1, 1.0], cv=2, random_state=0),
    "GapSVC": lambda: GapSVC(gamma=1.0, random_state=0),
    "TrackingSVC": lambda: TrackingSVC(gamma=1.0, random_state=0),
    "ExactRampSVC": lambda: ExactRampSVC(gamma=1.0, random_state=0),
    "KernelPerceptron": lambda: KernelPerceptron(gamma=1.0, random_state=0),
    "ExactSVC": lambda: ExactSVC(gamma=1.0),
    "ExactOneClassSVM": lambda: ExactOneClassSVM(gamma=1.0),
    "CompressedSVC": CompressedSVC,
}


def test_the_last_steps_are_all_estimators_with_files() -> None:
    assert set(LAST) == set(estimators())


@pytest.mark.parametrize("name", LAST)
def test_every_estimator_may_be_the_last_step(name: str, tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), LAST[name]())
    if name == "CompressedSVC":
        Z = pipeline[0].fit_transform(NUMBERS)
        full = OnlineSVC(gamma=1.0, random_state=0).fit(Z, Y)
        pipeline.steps[-1] = ("svm", full.compress(Z, Y, max_vectors=5))
    else:
        pipeline.fit(NUMBERS, Y)
    again = by_file(pipeline, tmp_path)
    for method in ("decision_function", "predict", "predict_proba"):
        assert hasattr(again, method) == hasattr(pipeline, method)
        if hasattr(pipeline, method):
            np.testing.assert_array_equal(
                getattr(again, method)(NUMBERS), getattr(pipeline, method)(NUMBERS)
            )


def test_a_pipeline_at_the_end_of_a_pipeline(tmp_path: Path) -> None:
    inner = make_pipeline(PCA(2), OnlineSVC(gamma=1.0, random_state=0))
    pipeline = make_pipeline(StandardScaler(), inner).fit(NUMBERS, Y)
    again = by_file(pipeline, tmp_path)
    np.testing.assert_array_equal(
        again.decision_function(NUMBERS), pipeline.decision_function(NUMBERS)
    )


# -- our transformers --------------------------------------------------------------------------


def table_of(rows: int) -> dict[str, Any]:
    random = np.random.RandomState(5)
    words = np.array(["ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen"])
    age = [None if k % 7 == 0 else float(x) for k, x in enumerate(random.standard_normal(rows))]
    return {
        "age": age,
        "job": [None if k % 5 == 0 else f"größe {k % 3}" for k in range(rows)],
        "flag": (random.uniform(size=rows) > 0.5).tolist(),
        "note": [" ".join(random.choice(words, 4)) + f" {k}" for k in range(rows)],
        "site": ["x"] * rows,
    }


def test_a_table_encoder(tmp_path: Path) -> None:
    data = pytest.importorskip("marginwise.data")
    table = table_of(N)
    encoder = data.TableEncoder(text=["note"], drop=["site"])
    pipeline = data.StreamPipeline([("table", encoder), ("svm", OnlineSVC(random_state=0))])
    unfitted = by_file(pipeline, tmp_path, data.StreamPipeline)
    assert difference(pipeline, unfitted) is None
    pipeline.fit(table, Y)
    again = by_file(pipeline, tmp_path, data.StreamPipeline)
    assert difference(pipeline, again) is None
    assert_equal(again[0].transform(table), pipeline[0].transform(table))
    np.testing.assert_array_equal(
        again[0].get_feature_names_out(), pipeline[0].get_feature_names_out()
    )
    for one in (pipeline, again):
        one.partial_fit(table, 1 - Y)
    np.testing.assert_array_equal(again.decision_function(table), pipeline.decision_function(table))
    with pytest.raises(ValueError, match="loaded from a file"):
        again[0].partial_fit(table)
    by_file(make_pipeline(again[0], again[1]), tmp_path)


# -- what else comes back ----------------------------------------------------------------------


def test_every_class_of_the_table_is_tried() -> None:
    tried: set[str] = set()

    def note(part: Any) -> None:
        if isinstance(part, BaseEstimator):
            tried.add(type(part).__name__)
            note(list(vars(part).values()))
        elif isinstance(part, list | tuple):
            for one in part:
                note(one)

    for case in CASES:
        note(made(case)[0])
    own = {name for name, row in TABLE.items() if row.module == "marginwise.data"}
    assert tried - {"OnlineSVC"} == set(TABLE) - own


def test_a_large_vocabulary(tmp_path: Path) -> None:
    """Words are in arrays: the JSON of a file has a limit."""
    words = [f"word{number:06d}" for number in range(100_000)]
    texts = [" ".join(words[k::N]) for k in range(N)]
    model = OnlineSVC(kernel="linear", random_state=0)
    pipeline = make_pipeline(TfidfVectorizer(), model).fit(texts, Y)
    again = by_file(pipeline, tmp_path)
    assert again[0].vocabulary_ == pipeline[0].vocabulary_
    assert list(again[0].vocabulary_) == list(pipeline[0].vocabulary_)
    assert_equal(again[0].transform(texts[:3]), pipeline[0].transform(texts[:3]))


def test_many_columns_of_categories(tmp_path: Path) -> None:
    """A file has few members, whatever the number of columns."""
    X = RNG.randint(3, size=(N, 500))
    frame = pd.DataFrame({f"column {k}": X[:, k] for k in range(500)})
    columns = ColumnTransformer([("codes", OneHotEncoder(), list(frame.columns))])
    pipeline = make_pipeline(columns, OnlineSVC(random_state=0)).fit(frame, Y)
    again = by_file(pipeline, tmp_path)
    with zipfile.ZipFile(tmp_path / "pipeline.mwz") as archive:
        assert len(archive.namelist()) < 64
    np.testing.assert_array_equal(again.decision_function(frame), pipeline.decision_function(frame))


def test_types_of_categories_come_back(tmp_path: Path) -> None:
    first, second = [1, 2.5, 7, np.float64(4)], ["a", np.str_("b"), None, np.nan]
    X = np.array([first, second], dtype=object).T
    encoder = OneHotEncoder(categories=[first, second])
    pipeline = make_pipeline(encoder, OnlineSVC(random_state=0)).fit(X, [0, 1, 0, 1])
    again = by_file(pipeline, tmp_path)
    for one, two in zip(pipeline[0].categories_, again[0].categories_, strict=True):
        assert [*map(type, one)] == [*map(type, two)]
    assert [*map(type, again[0].categories[0])] == [int, float, int, np.float64]


def test_feature_names_come_back(tmp_path: Path) -> None:
    pipeline, X = made("columns by name")
    again = by_file(pipeline.fit(X, Y), tmp_path)
    np.testing.assert_array_equal(
        again[:-1].get_feature_names_out(), pipeline[:-1].get_feature_names_out()
    )
    assert again[0].output_indices_ == pipeline[0].output_indices_
    with pytest.raises(ValueError, match="columns are missing"):
        again.predict(X.drop(columns="age"))
    shuffled = X[[*reversed(X.columns)]].assign(more=1)
    np.testing.assert_array_equal(again.predict(shuffled), pipeline.predict(X))


def test_stop_words_are_not_checked_again(tmp_path: Path) -> None:
    """Words that do not fit the tokens were warned of in fit."""
    pipeline = make_pipeline(CountVectorizer(stop_words=["it's"]), OnlineSVC(random_state=0))
    with pytest.warns(UserWarning, match="stop_words may be inconsistent"):
        pipeline.fit(TEXTS, Y)
    again = by_file(pipeline, tmp_path)
    np.testing.assert_array_equal(again.predict(TEXTS), pipeline.predict(TEXTS))


def test_a_scaler_continues(tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), OnlineSVC(random_state=0)).fit(NUMBERS, Y)
    again = by_file(pipeline, tmp_path)
    for one in (pipeline, again):
        one[0].partial_fit(NUMBERS + 3)
    assert difference(pipeline[0], again[0]) is None


def test_files_of_one_pipeline_are_equal_bytes(tmp_path: Path) -> None:
    pipeline, X = made("columns by name")
    pipeline.fit(X, Y)
    save(pipeline, tmp_path / "a.mwz")
    save(pipeline, tmp_path / "b.mwz")
    assert (tmp_path / "a.mwz").read_bytes() == (tmp_path / "b.mwz").read_bytes()


def test_only_pipelines_have_the_new_format(tmp_path: Path) -> None:
    model = OnlineSVC(random_state=0).fit(NUMBERS, Y)
    for saved, number in ((model, 4), (make_pipeline(StandardScaler(), model), 5)):
        save(saved, tmp_path / "m.mwz")
        with zipfile.ZipFile(tmp_path / "m.mwz") as archive:
            assert json.loads(archive.read("model.json"))["format"] == number


# -- versions ----------------------------------------------------------------------------------


def read_by(version: tuple[int, int], plain: Any, written: str) -> Any:
    """Decode what was written with one version of scikit-learn as if another were installed."""
    codec = Codec(written)
    codec.here = version
    return codec.decode(plain, "")


@pytest.mark.skipif(not hasattr(MaxAbsScaler(), "clip"), reason="before scikit-learn 1.8")
def test_parameters_that_a_version_does_not_have() -> None:
    written = Codec("1.9.1")
    written.here = (1, 9)
    plain = written.encode(OneHotEncoder(), "")
    assert difference(read_by((1, 6), plain, "1.9.1"), OneHotEncoder()) is None
    scaler = {"class": "MaxAbsScaler", "attributes": {}, "output": None}
    old, new = {"copy": True}, {"copy": True, "clip": False}
    assert read_by((1, 9), scaler | {"parameters": old}, "1.7.0").clip is False
    with pytest.raises(ValueError, match=r"lacks 'clip'"):
        read_by((1, 9), scaler | {"parameters": old}, "1.8.0")
    with pytest.raises(ValueError, match=r"does not know 'clip'"):
        read_by((1, 9), scaler | {"parameters": new}, "1.7.0")
    with pytest.raises(ValueError, match=r"clip of scikit-learn 1\.8\.0 is not in"):
        read_by((1, 7), scaler | {"parameters": new | {"clip": True}}, "1.8.0")


def test_versions_between_which_attributes_changed() -> None:
    plain = Codec(sklearn.__version__).encode(KBinsDiscretizer(), "")
    for written, here in (("1.6.1", (1, 7)), ("1.8.0", (1, 9)), ("1.9.0", (1, 8))):
        with pytest.raises(ValueError, match=f"it was saved with scikit-learn {written}, whose"):
            read_by(here, plain, written)
    plain = Codec(sklearn.__version__).encode(StandardScaler(), "")
    for written, here in (("1.6.1", (1, 9)), ("1.9.0rc1", (1, 6)), ("2.3.0", (2, 3))):
        assert isinstance(read_by(here, plain, written), StandardScaler)
    for written, here in (("1.5.2", (1, 6)), ("1.10.0", (1, 9)), ("2.0.0", (1, 9))):
        with pytest.raises(ValueError, match="are not known to be those"):
            read_by(here, plain, written)
