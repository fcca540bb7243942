"""Training and prediction on Dask: estimators that take Dask collections."""

from marginwise.dask.estimators import DaskGapSVC, DaskOnlineSVC

__all__ = ["DaskGapSVC", "DaskOnlineSVC"]
