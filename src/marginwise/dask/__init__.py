"""Training, tuning and scoring on a Dask cluster."""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "marginwise.dask needs dask and distributed, which are not installed. Run "
        "pip install 'marginwise[dask]'."
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
