"""Training, tuning and scoring on a Dask cluster."""

from marginwise._extras import install as _install

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "marginwise.dask needs dask and distributed, which are not installed. Run "
        f"{_install('dask')}."
    ) from error

from marginwise.dask.clients import connected
from marginwise.dask.estimators import DaskGapSVC, DaskOnlineSVC
from marginwise.dask.scoring import ScoringError, ScoringReport, predict_files

__all__ = [
    "DaskGapSVC",
    "DaskOnlineSVC",
    "ScoringError",
    "ScoringReport",
    "connected",
    "predict_files",
]
