"""Models whose last row was forgotten: every way to use them reports that they are empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginwise import ExactOneClassSVM, ExactSVC, load, save
from marginwise.exchange import to_c, to_json, to_libsvm, to_onnx
from tests.support import blobs

X, Y = blobs(40, 0, 3)
USES: dict[str, Any] = {
    "predict": lambda model, _: model.predict(X),
    "predict_one": lambda model, _: model.predict_one(X[0]),
    "predict_many": lambda model, _: model.predict_many(X),
    "decision_function": lambda model, _: model.decision_function(X),
    "to_c": lambda model, folder: to_c(model, folder / "model.h"),
    "to_json": lambda model, folder: to_json(model, folder / "model.json"),
    "to_libsvm": lambda model, folder: to_libsvm(model, folder / "model.txt"),
    "to_onnx": lambda model, folder: to_onnx(model, folder / "model.onnx"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", [ExactSVC, ExactOneClassSVM])
def test_an_empty_model_neither_predicts_nor_is_exported(
    kind: Any, use: str, tmp_path: Path
) -> None:
    if use == "to_onnx":
        pytest.importorskip("onnx")
    model = kind(gamma=0.5).fit(X, Y, groups=np.repeat([7], len(X))).forget(groups=[7])
    with pytest.raises(NotFittedError, match="is empty, because all rows were forgotten"):
        USES[use](model, tmp_path)
    assert list(tmp_path.iterdir()) == []
    save(model, tmp_path / "model.mwz")
    with pytest.raises(NotFittedError, match="is empty, because all rows were forgotten"):
        USES[use](load(tmp_path / "model.mwz"), tmp_path)
    USES[use](model.partial_fit(X, Y), tmp_path)


@pytest.mark.parametrize("export", [to_c, to_json, to_onnx])
def test_a_pipeline_that_ends_in_an_empty_model_is_not_exported(export: Any) -> None:
    if export is to_onnx:
        pytest.importorskip("skl2onnx")
    pipeline = make_pipeline(StandardScaler(), ExactSVC(gamma=0.5)).fit(X, Y)
    pipeline[-1].forget(pipeline[-1].ids_)
    with pytest.raises(NotFittedError, match="is empty, because all rows were forgotten"):
        export(pipeline)
