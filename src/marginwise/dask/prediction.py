"""Lazy predictions for Dask collections."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, get_client
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._estimator.prediction import IfCalibrated, Predictor
from marginwise.dask.collections import delayed_blocks, is_array, is_collection


def predict_block(model: Any, method: str, block: int, x: Any, empty: NDArray[Any]) -> NDArray[Any]:
    """Apply a method of a model to a block, which may be empty."""
    if x.shape[0] == 0:
        return empty
    try:
        values: NDArray[Any] = getattr(model, method)(x)
    except ValueError as error:
        raise ValueError(f"block {block} of X: {error}") from error
    return values


class DaskPredictor(Predictor):
    """Base class with the prediction methods for Dask collections."""

    client: Any

    def to_local(self) -> Any:
        """Return the local estimator."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Predict the class of each row.

        Parameters
        ----------
        X : Dask array or data frame, or array-like, of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        y_pred : dask.array.Array or ndarray of shape (n_samples,)
            Predicted class labels. For a Dask collection, a lazy array with the same blocks.
        """
        if not is_collection(X):
            return super().predict(X)
        check_is_fitted(self)
        return self._lazily(X, "predict", self.classes_.dtype, ())

    def decision_function(self, X: Any) -> Any:
        """Compute the decision function of each row.

        Parameters
        ----------
        X : Dask array or data frame, or array-like, of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : dask.array.Array or ndarray of shape (n_samples,) or (n_samples, n_classes)
            Decision values. For a Dask collection, a lazy array with the same blocks.
        """
        if not is_collection(X):
            return super().decision_function(X)
        check_is_fitted(self)
        width = () if len(self.classes_) <= 2 else (len(self.classes_),)
        return self._lazily(X, "decision_function", np.dtype(np.float64), width)

    @IfCalibrated
    def predict_proba(self, X: Any) -> Any:
        """Estimate class probabilities.

        Parameters
        ----------
        X : Dask array or data frame, or array-like, of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        probabilities : dask.array.Array or ndarray of shape (n_samples, n_classes)
            Probabilities of the classes, in the order of `classes_`. For a Dask collection, a lazy
            array with the same blocks.
        """
        if not is_collection(X):
            return super().predict_proba(X)
        check_is_fitted(self)
        return self._lazily(X, "predict_proba", np.dtype(np.float64), (len(self.classes_),))

    @IfCalibrated
    def predict_log_proba(self, X: Any) -> Any:
        """Estimate logarithms of class probabilities.

        Parameters
        ----------
        X : Dask array or data frame, or array-like, of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        log_probabilities : dask.array.Array or ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities of `predict_proba`.
        """
        if not is_collection(X):
            return super().predict_log_proba(X)
        logarithms: Float = np.log(self.predict_proba(X))
        return logarithms

    def _lazily(self, X: Any, method: str, dtype: np.dtype[Any], width: tuple[int, ...]) -> Any:
        """Return the values of a method for all blocks, as a lazy array."""
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            columns = f"{X.shape[1]} features" if X.ndim == 2 else f"{X.ndim} dimension(s)"
            raise ValueError(
                f"X has {columns}, but {type(self).__name__} was fitted with "
                f"{self.n_features_in_} features. Pass the same columns as in fit."
            )
        if is_array(X) and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        blocks = delayed_blocks(X)
        lengths = X.chunks[0] if is_array(X) else [math.nan] * len(blocks)
        model, call = self._shared(), dask.delayed(predict_block, pure=True)
        empty = np.empty((0, *width), dtype=dtype)
        parts = [
            da.from_delayed(call(model, method, k, block, empty), (rows, *width), dtype=dtype)
            for k, (block, rows) in enumerate(zip(blocks, lengths, strict=True))
        ]
        return da.concatenate(parts)

    def _shared(self) -> Any:
        """Return the model for use in a task graph.

        If there is a cluster, the model is scattered to the workers. Otherwise, it is embedded in
        the graph, which may be computed later by another client.
        """
        model, client = self.to_local(), self.client
        if client is None:
            with contextlib.suppress(ValueError):
                client = get_client()
        if not isinstance(client, Client) or client.status != "running":
            return dask.delayed(model, pure=False, traverse=False)
        return client.scatter(model, hash=False)
