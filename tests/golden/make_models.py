"""Write the model files that every later version must be able to load.

A file is named for its estimator and its format. Write a new one when the format changes, and
keep the old: ``python tests/golden/make_models.py`` writes those of the formats in use. A file of a
pipeline is also named for the version of scikit-learn that its transformers are of.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
    save,
)
from marginwise._files.format import FORMAT, PIPELINE_FORMAT

MODELS = Path(__file__).parent / "models"


def make_online() -> None:
    """Three classes with names, weights, and a random state."""
    random = np.random.RandomState(0)
    X = random.standard_normal((60, 3)).round(6)
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0])]
    model = OnlineSVC(
        C=10.0,
        gamma=0.5,
        class_weight={"low": 1.0, "middle": 2.0, "high": 1.5},
        random_state=random,
    )
    model.fit(X, y)
    write("online", model, random.standard_normal((20, 3)).round(6))


def make_others() -> None:
    """Two noisy classes, learned in part, so that a later version can go on."""
    random = np.random.RandomState(1)
    X = random.standard_normal((120, 2)).round(6)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * random.standard_normal(120) > 0, 1, -1)
    rows = random.standard_normal((20, 2)).round(6)
    common = {"C": 5.0, "gamma": 1.0, "random_state": 3}
    models = {
        "gap": GapSVC(loss="ramp", clean_every=50, max_idle=5, record=True, **common),
        "tracking": TrackingSVC(**common),
        "exact_ramp": ExactRampSVC(max_idle=20, **common),
        "perceptron": KernelPerceptron(average=True, **common),
    }
    for name, model in models.items():
        write(name, model.partial_fit(X, y, classes=[-1, 1]), rows)


def make_exact() -> None:
    """Rows learned and forgotten, so that factors have holes."""
    random = np.random.RandomState(2)
    X = random.standard_normal((90, 2)).round(6)
    y = np.digitize(X[:, 0] + 0.5 * random.standard_normal(90), [-0.5, 0.5])
    rows = random.standard_normal((20, 2)).round(6)
    exact = ExactSVC(C=5.0, gamma=1.0, record=True)
    write("exact", exact.partial_fit(X, y, classes=[0, 1, 2]).forget(range(0, 60, 3)), rows)
    one_class = ExactOneClassSVM(nu=0.2, gamma=1.0, window=70)
    write("one_class", one_class.partial_fit(X).forget([25, 30]), rows)


def make_compressed() -> None:
    """Four classes in pairs, whose problems share a few centres, with a curve of errors."""
    random = np.random.RandomState(4)
    X = random.standard_normal((200, 2)).round(6)
    y = 2 * (X[:, 0] > 0) + (X[:, 1] > 0)
    model = OnlineSVC(C=5.0, gamma=1.0, random_state=0).fit(X, y)
    small = model.compress(X, y, max_vectors=16, max_error_increase=0.5)
    write("compressed", small, random.standard_normal((20, 2)).round(6))


def make_calibrated() -> None:
    """A stream of three classes, in the middle of it, with what is known for probabilities."""
    random = np.random.RandomState(4)
    X = random.standard_normal((150, 2)).round(6)
    y = np.digitize(X[:, 0] + 0.5 * random.standard_normal(150), [-0.5, 0.5])
    model = OnlineSVC(C=2.0, gamma=1.0, calibration="sigmoid", random_state=3)
    rows = random.standard_normal((20, 2)).round(6)
    write("calibrated", model.partial_fit(X, y, classes=[0, 1, 2]), rows)


def make_pipelines() -> None:
    """Numbers, texts, and columns of all kinds, before a model that can continue."""
    random = np.random.RandomState(5)
    X = random.standard_normal((80, 3)).round(6)
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    scalers = (
        StandardScaler(),
        MinMaxScaler(),
        MaxAbsScaler(),
        QuantileTransformer(n_quantiles=10, random_state=0),
        PowerTransformer(),
    )
    union = FeatureUnion([(type(one).__name__, one) for one in scalers])
    model = OnlineSVC(C=5.0, random_state=0)
    write_pipeline("numbers", make_pipeline(union, PCA(4), model).fit(X, y), X[:20])
    words = np.array(["the", "cat", "sat", "on", "a", "mat", "with", "one", "old", "dog"])
    texts = [" ".join(random.choice(words, 5)) for _ in range(80)]
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words=["the"])
    write_pipeline("texts", make_pipeline(vectorizer, model).fit(texts, y), texts[:20])
    frame = pd.DataFrame({"age": X[:, 0], "height": X[:, 1]})
    frame.loc[::7, "age"] = np.nan
    frame["colour"] = pd.Series(random.choice(["red", "green", "größe"], 80), dtype=object)
    frame.loc[::9, "colour"] = None
    frame["code"] = random.randint(4, size=80)
    imputed = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = ColumnTransformer(
        [
            ("numbers", imputed, ["age"]),
            ("colours", OneHotEncoder(handle_unknown="ignore", min_frequency=3), ["colour"]),
            ("codes", OrdinalEncoder(), ["code"]),
        ],
        remainder="passthrough",
    )
    write_pipeline("columns", make_pipeline(columns, model).fit(frame, y), frame[:20])


def write_pipeline(name: str, model: Any, rows: Any) -> None:
    """Write a pipeline; rows may be a data frame or a list of texts."""
    version = "_".join(sklearn.__version__.split(".")[:2])
    write(f"{name}_sklearn_{version}", model, rows, PIPELINE_FORMAT)


def write(name: str, model: Any, rows: Any, number: int = FORMAT) -> None:
    """Write a model, and beside it rows with what it says of them."""
    path = MODELS / f"{name}-v{number}.mwz"
    save(model, path)
    expected: dict[str, Any] = {}
    if isinstance(rows, pd.DataFrame):
        expected["columns"] = list(rows.columns)
        listed = rows.astype(object).where(rows.notna(), None).to_numpy().tolist()
    else:
        listed = np.asarray(rows).tolist()
    expected |= {
        "rows": listed,
        "decision": model.decision_function(rows).tolist(),
        "predicted": model.predict(rows).tolist(),
    }
    if hasattr(model, "predict_proba"):
        expected["probabilities"] = model.predict_proba(rows).tolist()
    path.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    MODELS.mkdir(exist_ok=True)
    make_online()
    make_others()
    make_exact()
    make_compressed()
    make_calibrated()
    make_pipelines()
