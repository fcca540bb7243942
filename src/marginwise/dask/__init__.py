"""Training and scoring on a Dask cluster."""

from marginwise.dask.scoring import ScoringError, ScoringReport, predict_files
from marginwise.dask.scoring_cluster import connected

__all__ = ["ScoringError", "ScoringReport", "connected", "predict_files"]
