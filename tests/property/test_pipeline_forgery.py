"""No file of a pipeline, however made, does more than load a pipeline or raise ModelFileError.

As for files of estimators: damaged files are refused or the same, and forged files, with all
checksums right, are refused wherever transformers could be led astray.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import Pipeline

from marginwise import save
from tests.property.test_model_files import (
    ODD_FLOATS,
    ODD_INTEGERS,
    ODD_VALUES,
    Forged,
    Sample,
    assert_refused_or_same,
    attempt,
    random_leaf,
)
from tests.stress.pipelines import LABELS, VARIANTS, pipeline

__all__ = ["attempt"]  # a fixture

NUMBERS, COLUMNS, TEXTS, SPARSE, TABLE = range(5)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    path = tmp_path_factory.mktemp("pipelines") / "honest.mwz"
    found = []
    for variant in range(VARIANTS):
        model, X = pipeline(variant)
        save(model, path)
        found.append(Sample(path.read_bytes(), X, LABELS, model.decision_function(X)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("variant", range(VARIANTS))
def test_the_samples_are_in_order(samples: Any, variant: int, attempt: Any) -> None:
    sample = samples[variant]
    assert not assert_refused_or_same(attempt, sample.data, sample)
    assert not assert_refused_or_same(attempt, Forged(sample.data).seal(), sample)


# -- damage ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("variant", range(VARIANTS))
def test_flipped_bits_and_cuts(samples: Any, variant: int, attempt: Any, seed: int) -> None:
    sample, rng = samples[variant], np.random.default_rng(seed)
    refused = 0
    for at in rng.integers(len(sample.data), size=30):
        data = bytearray(sample.data)
        data[at] ^= 1 << rng.integers(8)
        refused += assert_refused_or_same(attempt, bytes(data), sample)
        assert isinstance(attempt(sample.data[:at]), str)
    assert refused > 15  # zip headers and padding do not matter


# -- forgery -----------------------------------------------------------------------------------


def nodes(plain: Any) -> list[Any]:
    """All estimators in the JSON of a file."""
    if isinstance(plain, list):
        return [node for item in plain for node in nodes(item)]
    if not isinstance(plain, dict):
        return []
    inner = [node for item in plain.values() for node in nodes(item)]
    return [plain, *inner] if isinstance(plain.get("class"), str) else inner


def node(forged: Forged, name: str, fitted: bool = True) -> Any:
    """The first estimator of a class, fitted or not; "OneHotEncoder 1" is the second."""
    name, _, number = name.partition(" ")
    found = [one for one in nodes(forged.state) if one["class"] == name]
    if "attributes" in found[0] and fitted and any(map(inside, found)):
        found = [one for one in found if inside(one)]
    return found[int(number or 0)]


def inside(node: Any) -> Any:
    return node["attributes"]["dict"]


def parameter(name: str, **values: Any) -> Callable[[Forged], Any]:
    return lambda forged: node(forged, name)["parameters"]["dict"].update(values)


def attribute(name: str, **values: Any) -> Callable[[Forged], Any]:
    return lambda forged: inside(node(forged, name)).update(values)


def without(name: str, key: str) -> Callable[[Forged], Any]:
    return lambda forged: inside(node(forged, name)).pop(key)


def members(plain: Any) -> list[str]:
    """The names of the arrays that JSON refers to."""
    if isinstance(plain, list):
        return [member for item in plain for member in members(item)]
    if not isinstance(plain, dict):
        return []
    for tag in ("array", "floats"):
        if isinstance(plain.get(tag), str):
            return [plain[tag]]
    if isinstance(plain.get("strings"), str):
        return [f"{plain['strings']}.text", f"{plain['strings']}.ends"]
    return [member for item in plain.values() for member in members(item)]


def changed(name: str, key: str, change: Callable[[Any], Any], part: str = "") -> Any:
    """Change the first array of an attribute, or the one whose name ends with `part`."""

    def forge(forged: Forged) -> None:
        found = [m for m in members(inside(node(forged, name))[key]) if m.endswith(part)]
        forged.arrays[found[0]] = change(forged.arrays[found[0]])

    return forge


def put(at: Any, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array = array.copy()
        array[at] = value
        return array

    return change


def state(**values: Any) -> Callable[[Forged], Any]:
    return lambda forged: forged.state.update({k.replace("_", "-"): v for k, v in values.items()})


def renamed(old: str, new: str) -> Callable[[Forged], Any]:
    def forge(forged: Forged) -> None:
        node(forged, old)["class"] = new

    return forge


def top(forged: Forged) -> Any:
    """The parameters of the pipeline."""
    return forged.state["pipeline"]["dict"]["parameters"]["dict"]


def last_step(value: Any) -> Callable[[Forged], Any]:
    return lambda forged: top(forged)["steps"][-1].__setitem__(1, value)


def only_the_model(forged: Forged) -> None:
    forged.state["pipeline"] = {"dict": node(forged, "OnlineSVC")}


def moved_model(forged: Forged) -> None:
    """Put the classifier before a transformer."""
    top(forged)["steps"].reverse()


def deep(forged: Forged) -> None:
    place = top(forged)["steps"]
    for _ in range(40):
        inner = {"class": "Pipeline", "attributes": {"dict": {}}, "output": None}
        options = {"memory": None, "verbose": False, "transform_input": None, "steps": []}
        inner["parameters"] = {"dict": options}
        place.insert(0, [f"deep{len(place)}", {"dict": inner}])
        place = options["steps"]


Lie = tuple[int, str, Callable[[Forged], Any]]


def other_class(forged: Forged) -> None:
    top(forged)["steps"][-1][1]["dict"]["class"] = "GapSVC"


def other_state(forged: Forged) -> None:
    top(forged)["steps"][-1][1]["dict"]["state"] = 1


def no_code(forged: Forged) -> None:
    top(forged).update(memory="/tmp")


def many_jobs(forged: Forged) -> None:
    node(forged, "FeatureUnion")["parameters"]["dict"].update(n_jobs=10**6)


def other_output(forged: Forged) -> None:
    node(forged, "PCA").update(output={"dict": {"transform": "exec"}})


def other_columns(at: Any) -> Callable[[Forged], Any]:
    def forge(forged: Forged) -> None:
        columns = node(forged, "ColumnTransformer")["parameters"]["dict"]["transformers"]
        columns[0][2] = at

    return forge


def other_remainder(forged: Forged) -> None:
    node(forged, "ColumnTransformer")["parameters"]["dict"]["remainder"] = "drop"


def lost_transformer(forged: Forged) -> None:
    inside(node(forged, "ColumnTransformer"))["fitted"].pop()


def unfitted_transformer(forged: Forged) -> None:
    inside(node(forged, "SimpleImputer")).clear()


FORMAT_STRING = "{feature_name.__class__}"
OTHER_SLICE = {"dict": {"slice": [0, 1, 0]}}
MORE_COLUMNS = {"dict": {"slice": ["age", "colour", None]}}
ONE_HOT = "OneHotEncoder"

LIES: list[Lie] = [
    # the outline
    (NUMBERS, "they hold", renamed("PCA", "Popen")),
    (NUMBERS, "they hold", renamed("PCA", "os.system")),
    (NUMBERS, "its parameters are not those", renamed("PCA", "StandardScaler")),
    (NUMBERS, "does not contain a Pipeline", only_the_model),
    (NUMBERS, "parts are not those expected", state(more=1)),
    (NUMBERS, "not a version of scikit-learn", state(scikit_learn="new")),
    (NUMBERS, "must be the number of a version", state(scikit_learn=1.6)),
    (NUMBERS, "it was saved with scikit-learn 1.5.2", state(scikit_learn="1.5.2")),
    (NUMBERS, f"those of scikit-learn {sklearn.__version__}", state(scikit_learn="99.0")),
    (NUMBERS, "a part is not an estimator", state(pipeline=[])),
    (NUMBERS, "a part is not an estimator", state(pipeline={"dict": {"class": 1}})),
    (NUMBERS, "it ends in passthrough", last_step("passthrough")),
    (NUMBERS, "in the place of a transformer", last_step("drop")),
    (NUMBERS, "which must be the last step", moved_model),
    (NUMBERS, "it is too deep", deep),
    (NUMBERS, "its parameters are not those", other_class),
    (NUMBERS, "its state must be a dict", other_state),
    # parameters
    (NUMBERS, "lacks 'copy'", lambda f: node(f, "PCA")["parameters"]["dict"].pop("copy")),
    (NUMBERS, "does not know 'more'", parameter("PCA", more=1)),
    (NUMBERS, "memory must be None", no_code),
    (NUMBERS, "n_jobs must be", many_jobs),
    (NUMBERS, "func must be None", parameter("FunctionTransformer", func="os.system")),
    (NUMBERS, "with_mean must be", parameter("StandardScaler", with_mean="yes")),
    (NUMBERS, "feature_range must be", parameter("MinMaxScaler", feature_range={"tuple": [2, 1]})),
    (NUMBERS, "degree must be", parameter("PolynomialFeatures", degree=101)),
    (TEXTS, "token_pattern must be", parameter("TfidfVectorizer", token_pattern="(")),
    (TEXTS, "token_pattern must be", parameter("TfidfVectorizer", token_pattern="(a)(b)")),
    (TEXTS, "token_pattern must be", parameter("TfidfVectorizer", token_pattern="a" * 1001)),
    (TEXTS, "encoding must be", parameter("TfidfVectorizer", encoding="zlib")),
    (TEXTS, "encoding must be", parameter("TfidfVectorizer", encoding="../os")),
    (TEXTS, "input must be 'content'", parameter("TfidfVectorizer", input="filename")),
    (TEXTS, "tokenizer must be None", parameter("TfidfVectorizer", tokenizer="print")),
    (TEXTS, "dtype must be", parameter("TfidfVectorizer", dtype={"dict": {"type": "memmap"}})),
    (TEXTS, "score_func must be", parameter("SelectKBest", score_func="SelectKBest")),
    (TEXTS, "n_features must be", parameter("HashingVectorizer", n_features=2**31)),
    (
        COLUMNS,
        "verbose_feature_names_out must be",
        parameter("ColumnTransformer", verbose_feature_names_out=FORMAT_STRING),
    ),
    # widths
    (NUMBERS, "n_features_in_ must be an integer", attribute("PCA", n_features_in_=0)),
    (NUMBERS, "n_features_in_ must be an integer", attribute("PCA", n_features_in_=2**31)),
    (NUMBERS, "must have the shape", attribute("StandardScaler", n_features_in_=4)),
    (NUMBERS, "expects 4 features, but gets", attribute("Binarizer", n_features_in_=4)),
    (NUMBERS, "expects 3 features, but gets 4", attribute("FunctionTransformer", n_features_in_=4)),
    (NUMBERS, "makes too many features", attribute("PolynomialFeatures", n_features_in_=1000)),
    (NUMBERS, "expects", parameter("PolynomialFeatures", degree=2)),
    (SPARSE, "expects", attribute("Normalizer", n_features_in_=5)),
    (SPARSE, "expects", parameter("VarianceThreshold", threshold=0.9)),
    (TEXTS, "expects", parameter("SelectKBest", k=4)),
    (TEXTS, "expects", parameter("HashingVectorizer", n_features=65)),
    # numbers
    (NUMBERS, "mean_ must be finite", changed("PCA", "mean_", put(0, np.nan))),
    (NUMBERS, "components_ must be finite", changed("PCA", "components_", put((0, 0), np.inf))),
    (NUMBERS, "components_ must have the shape", changed("PCA", "components_", lambda a: a[:-1])),
    (NUMBERS, "components_ must be", changed("PCA", "components_", np.int64)),
    (NUMBERS, "components_ must have the shape", attribute("PCA", n_components_=3)),
    (NUMBERS, "scale_ must be", attribute("StandardScaler", scale_=1.0)),
    (NUMBERS, "scale_ must be there", attribute("StandardScaler", scale_=None)),
    (NUMBERS, "lacks 'scale_'", without("StandardScaler", "scale_")),
    (NUMBERS, "does not know 'x_'", attribute("StandardScaler", x_=1)),
    (
        NUMBERS,
        "quantiles_ must not decrease",
        changed("QuantileTransformer", "quantiles_", lambda a: a[::-1, ::-1]),
    ),
    (NUMBERS, "bad references_", changed("QuantileTransformer", "references_", put(0, 2.0))),
    (NUMBERS, "_scaler must fit", without("PowerTransformer", "_scaler")),
    (NUMBERS, "set_output has other values", other_output),
    (SPARSE, "bin_edges_ must fit", changed("KBinsDiscretizer", "n_bins_", put(0, 4))),
    (SPARSE, "bin_edges_ must not", changed("KBinsDiscretizer", "bin_edges_", np.negative, "0")),
    (SPARSE, "_encoder must fit", parameter("KBinsDiscretizer", encode="ordinal")),
    # columns
    (COLUMNS, "column 'x' is unknown", other_columns("x")),
    (COLUMNS, "column 99 is unknown", other_columns(99)),
    (COLUMNS, "a slice must have a step", other_columns(OTHER_SLICE)),
    (COLUMNS, "expects 2 features, but gets 3", other_columns(MORE_COLUMNS)),
    (COLUMNS, "is fitted otherwise", other_remainder),
    (COLUMNS, "must have one fitted transformer", lost_transformer),
    (COLUMNS, "is not fitted", unfitted_transformer),
    (COLUMNS, "features_ must be numbers", changed("MissingIndicator", "features_", put(0, 2))),
    (
        COLUMNS,
        "statistics_ must have the shape",
        changed("SimpleImputer", "statistics_", lambda a: a[:-1]),
    ),
    # categories
    (COLUMNS, "another size", changed(ONE_HOT, "categories_", lambda a: a + 1, "sizes")),
    (COLUMNS, "another size", changed(ONE_HOT, "categories_", lambda a: a - 1, "sizes")),
    (COLUMNS, "must be a list of arrays", changed(ONE_HOT, "categories_", np.negative, "sizes")),
    (COLUMNS, "arrays of unknown type", changed(ONE_HOT, "categories_", put(0, 9), "which")),
    (COLUMNS, "objects of unknown type", changed(ONE_HOT, "categories_", put(0, 99), "codes")),
    (COLUMNS, "contains too", changed(ONE_HOT, "categories_", put(0, 0), "codes")),
    (COLUMNS, "must ascend", changed(f"{ONE_HOT} 1", "categories_", lambda a: a[::-1], "0")),
    (COLUMNS, "must ascend", changed(f"{ONE_HOT} 1", "categories_", np.zeros_like, "0")),
    (COLUMNS, "_infrequent", changed(f"{ONE_HOT} 2", "_infrequent_indices", put(-1, 99), "0")),
    (COLUMNS, "_infrequent", changed(f"{ONE_HOT} 2", "_infrequent_indices", put(0, -1), "0")),
    (COLUMNS, "lacks '_drop_idx", without(f"{ONE_HOT} 2", "_drop_idx_after_grouping")),
    (
        COLUMNS,
        "_drop_idx_after_grouping is out of range",
        changed(f"{ONE_HOT} 2", "_drop_idx_after_grouping", put(0, 3), "whole"),
    ),
    (COLUMNS, "must fit drop", parameter(f"{ONE_HOT} 2", drop=None)),
    (COLUMNS, "_infrequent_indices must fit", parameter(f"{ONE_HOT} 2", max_categories=None)),
    (COLUMNS, "unknown_value must fit", parameter("OrdinalEncoder", unknown_value=None)),
    # text
    (
        TEXTS,
        "vocabulary_ must number",
        changed("TfidfVectorizer", "vocabulary_", lambda a: a + 1, "places"),
    ),
    (
        TEXTS,
        "vocabulary_ must number",
        changed("TfidfVectorizer", "vocabulary_", put(0, 10**9), "places"),
    ),
    (
        TEXTS,
        "vocabulary_ must number",
        changed("TfidfVectorizer", "vocabulary_", put(0, -1), "places"),
    ),
    (TEXTS, "a dict from", changed("TfidfVectorizer", "vocabulary_", lambda a: a[:-1], "places")),
    (TEXTS, "idf_ must have the shape", changed("TfidfTransformer", "idf_", lambda a: a[:-1])),
    (TEXTS, "idf_ must be finite", changed("TfidfTransformer", "idf_", put(0, np.inf))),
    (TEXTS, "idf_ must fit use_idf", parameter("TfidfTransformer", use_idf=False)),
    # tables
    (TABLE, "lacks 'kinds_'", without("TableEncoder", "kinds_")),
    (TABLE, "feature_names_in_ must have", attribute("TableEncoder", n_features_in_=4)),
    (TABLE, "feature_names_in_ is missing", without("TableEncoder", "feature_names_in_")),
    (TABLE, "mean_ must be one per numeric", changed("TableEncoder", "mean_", lambda a: a[:-1])),
    (TABLE, "scale_ must be above 0", changed("TableEncoder", "scale_", put(0, 0.0))),
    (TABLE, "fill_ must be finite", changed("TableEncoder", "fill_", put(0, np.nan))),
    (TABLE, "vectorizers_ must be one", attribute("TableEncoder", vectorizers_=[])),
    (TABLE, "categories_ must be", changed("TableEncoder", "categories_", put(0, 0), "listed")),
    (TABLE, "expects", changed("TableEncoder", "missing_", put(0, 0), "whole")),
]


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: f"{lie[0]}: {lie[1]}")
def test_forged_content(samples: Any, lie: Lie, attempt: Any) -> None:
    variant, message, forge = lie
    if variant >= VARIANTS:
        pytest.skip("needs marginwise.data and pyarrow")
    forged = Forged(samples[variant].data)
    forge(forged)
    used = set(members(forged.state))
    forged.arrays = {name: array for name, array in forged.arrays.items() if name in used}
    assert message in attempt(forged.seal())


# -- whatever stands in a file -----------------------------------------------------------------


def assert_works(model: Pipeline, sample: Sample) -> None:
    """A pipeline may be odd, but predicts, or refuses rows with a ValueError."""
    jobs = [name for name in model.get_params() if name.endswith("n_jobs")]
    model.set_params(**dict.fromkeys(jobs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = model.decision_function(sample.rows)
        except ValueError:
            return
    assert np.isfinite(values).all()


@pytest.mark.slow
@pytest.mark.parametrize("variant", range(VARIANTS))
def test_forged_numbers(samples: Any, variant: int, attempt: Any, seed: int) -> None:
    sample, rng = samples[variant], np.random.default_rng(seed)
    for _ in range(25):
        forged = Forged(sample.data)
        array = forged.arrays[rng.choice(list(forged.arrays))]
        odd = ODD_FLOATS if array.dtype.kind == "f" else ODD_INTEGERS
        if not array.size or array.dtype.kind not in "fiu":
            continue
        with np.errstate(all="ignore"):
            array.flat[rng.integers(array.size)] = np.array(rng.choice(odd)).astype(array.dtype)
        result = attempt(forged.seal())
        if not isinstance(result, str):
            assert_works(result, sample)


@pytest.mark.slow
@pytest.mark.parametrize("variant", range(VARIANTS))
def test_forged_values(samples: Any, variant: int, attempt: Any, seed: int) -> None:
    sample, rng = samples[variant], np.random.default_rng(seed)
    for _ in range(25):
        forged = Forged(sample.data)
        owner, key = random_leaf(forged.document, rng)
        owner[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
        result = attempt(forged.seal())
        if not isinstance(result, str):
            assert_works(result, sample)
