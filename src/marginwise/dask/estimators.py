"""Estimators for Dask collections."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from marginwise._checks import Rule, integer
from marginwise._estimator.classifier import KernelClassifier
from marginwise.dask.collections import is_collection
from marginwise.dask.parameters import OWN, extends
from marginwise.dask.prediction import DaskPredictor
from marginwise.dask.training import Call, DaskTraining
from marginwise.gap import GapSVC
from marginwise.online import OnlineSVC

FITTED = ("rounds_",)  # attributes that local estimators do not have
OWN_RULES: dict[str, Rule] = {"sift_rounds": integer(1), "round_rows": integer(1)}


class DaskClassifier(DaskPredictor, DaskTraining):
    """Base class of the estimators for Dask collections."""

    _local: ClassVar[type[KernelClassifier]]

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        *,
        sift: float = 0.0,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_minutes: float = 10.0,
    ) -> Self:
        """Fit the model from scratch.

        The blocks are computed once, validated on the workers, and stay in the memory of the
        workers during the call. Up to 4,096 rows, or `round_rows` if it is smaller, are learned by
        the client process alone, as by the local estimator and without a checkpoint.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Training rows: blocks of dense rows, CSR blocks, or partitions with numeric columns.
        y : Dask array or series of shape (n_samples,)
            Class labels, with the same blocks as `X`. If the chunk sizes are known, labels with
            other blocks are rechunked.
        sift : float, default=0.0
            Fraction of the rows inside a margin that a coarse approximation of the model may miss
            when workers evaluate rows. The approximation is faster if the model has more than
            20,000 support vectors. 0 uses the full model.
        checkpoint : str or path-like, default=None
            File from which an interrupted run is resumed. An existing file must belong to the same
            run, with the same parameters and the same data in the same blocks. None writes no
            checkpoint.
        checkpoint_minutes : float, default=10.0
            Minutes between writes of the checkpoint.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        failures: list[OSError] = []
        call = Call(sift, checkpoint, checkpoint_minutes, self.sift_rounds)
        self._fit_blocks(X, y, call, failures)
        if failures:  # the last checkpoint was not written, but the model is valid
            raise failures[0]
        return self

    def fit_source(
        self,
        source: Any,
        classes: ArrayLike | None = None,
        *,
        sift: float = 0.0,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_minutes: float = 10.0,
    ) -> Self:
        """Fit the model from scratch on a data source that workers read.

        Each worker has a copy of the source and reads the rows that it evaluates. If the source has
        training stages, the model is finished after each stage.

        Parameters
        ----------
        source : object
            Data source that can be pickled, such as :class:`marginwise.invariance.VirtualSet`:
            ``len(source)`` is the number of rows, and ``source.read(ids)`` returns the features and
            labels of the given rows.
        classes : array-like of shape (n_classes,), default=None
            All labels that can occur. By default, ``source.classes``.
        sift : float, default=0.0
            Fraction of the rows inside a margin that a coarse approximation of the model may miss;
            see `fit`.
        checkpoint : str or path-like, default=None
            File from which a stopped run is resumed.
        checkpoint_minutes : float, default=10.0
            Minutes between writes of the checkpoint.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        failures: list[OSError] = []
        call = Call(sift, checkpoint, checkpoint_minutes, self.sift_rounds)
        self._fit_from(source, classes, call, failures)
        if failures:
            raise failures[0]
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows.

        Rows of Dask collections are evaluated and learned in rounds, in one pass, as by `fit`, but
        without finishing the model. Rows in memory are learned in the given order, as by the local
        estimator.

        Parameters
        ----------
        X : Dask array or data frame, or array-like, of shape (n_samples, n_features)
            Rows to learn.
        y : Dask array or series, or array-like, of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that can occur. If the first call does not pass `classes`, the labels of its
            rows are used; `DaskOnlineSVC` then adds a class whenever a new label occurs.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that multiply C for each row. Only supported for rows in memory.
        ids : array-like of int of shape (n_samples,), default=None
            Ids of the rows. Only supported for rows in memory.
        groups : array-like of shape (n_samples,), default=None
            Not supported; must be None.

        Returns
        -------
        self : object
            The updated estimator.
        """
        if not is_collection(X):
            return super().partial_fit(X, y, classes, sample_weight, ids, groups)
        for name, given in (("sample_weight", sample_weight), ("ids", ids), ("groups", groups)):
            if given is not None:
                raise ValueError(
                    f"{name} is not supported for Dask collections. Pass {name}=None, or rows in "
                    "memory."
                )
        return self._learn_blocks(X, y, classes)

    def to_local(self) -> Any:
        """Return the local estimator, which can be saved and needs no cluster.

        Returns
        -------
        model : OnlineSVC or GapSVC
            Independent copy of the model.
        """
        model = self._now()
        local = self._local.__new__(self._local)
        hidden = {*OWN, *FITTED}
        local.__dict__ = {k: v for k, v in model.__dict__.items() if k not in hidden}
        if "_engine" in local.__dict__:
            local._engine = local._engine.clone()
        return local

    def __sklearn_clone__(self) -> Self:
        twin = self._copy()
        twin.client = None
        made: Self = super(DaskClassifier, twin).__sklearn_clone__()
        made.client = self.client  # connections are not copied
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}


@extends(OnlineSVC)
class DaskOnlineSVC(DaskClassifier, OnlineSVC):
    """Online support vector classifier for Dask collections.

    This is :class:`~marginwise.OnlineSVC` trained by parallel active sifting [agarwal2013]_. In
    each round, workers evaluate their next rows with a snapshot of the model and return the rows
    inside the margin of some class, together with a random sample of the others. The client process
    learns these rows while workers evaluate the next round. Blocks are not moved between workers.
    The model depends on the data, its blocks, `round_rows` and `random_state`, but not on the
    number of workers, the order of their results, or lost workers.

    Dask collections and sources are learned with one of the kernels that workers can compute, not
    with ``kernel="precomputed"`` or a function, and with the defaults of `epochs`, `stop` and
    `replay`. `sift_rounds` sets the number of passes, and `pool_size` must be an integer.

    See Also
    --------
    marginwise.OnlineSVC : Local estimator.
    DaskGapSVC : Online classifier that is robust to mislabelled rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> from marginwise.dask import DaskOnlineSVC
    >>> X, y = make_moons(6000, noise=0.2, random_state=0)
    >>> X, y = da.from_array(X, chunks=(1000, 2)), da.from_array(y, chunks=1000)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = DaskOnlineSVC(C=10, gamma=1.0, random_state=0, client=client).fit(X, y)
    >>> model.to_local().predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """

    _local = OnlineSVC
    _rules: ClassVar[dict[str, Rule]] = {**OnlineSVC._rules, **OWN_RULES}

    def __init__(
        self,
        *,
        client: Any = None,
        sift_rounds: int = 1,
        round_rows: int = 16384,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.client = client
        self.sift_rounds = sift_rounds
        self.round_rows = round_rows


@extends(GapSVC)
class DaskGapSVC(DaskClassifier, GapSVC):
    """Online classifier for Dask collections, robust to mislabelled rows.

    This is :class:`~marginwise.GapSVC` trained by parallel active sifting [agarwal2013]_, as
    :class:`DaskOnlineSVC`. Dask collections and sources are learned with one of the kernels that
    workers can compute, not with ``kernel="precomputed"`` or a function.

    See Also
    --------
    marginwise.GapSVC : Local estimator.
    DaskOnlineSVC : Fast online classifier; the default choice.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> from marginwise.dask import DaskGapSVC
    >>> X, y = make_moons(6000, noise=0.2, random_state=0)
    >>> X, y = da.from_array(X, chunks=(1000, 2)), da.from_array(y, chunks=1000)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = DaskGapSVC(C=10, gamma=1.0, random_state=0, client=client).fit(X, y)
    >>> model.to_local().predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """

    _local = GapSVC
    _rules: ClassVar[dict[str, Rule]] = {**GapSVC._rules, **OWN_RULES}

    def __init__(
        self,
        *,
        client: Any = None,
        sift_rounds: int = 1,
        round_rows: int = 16384,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.client = client
        self.sift_rounds = sift_rounds
        self.round_rows = round_rows
