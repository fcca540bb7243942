"""Kernel machines that learn online, select their training rows, and can forget rows."""

from marginwise._estimator.compressed import CompressedSVC
from marginwise._estimator.exact_results import LeaveOneOut, TuningPath
from marginwise.active.learner import ActiveLearner
from marginwise.exact import ExactSVC
from marginwise.exact_ramp import ExactRampSVC
from marginwise.gap import GapSVC
from marginwise.model_io import ModelFileError, load, save
from marginwise.one_class import ExactOneClassSVM
from marginwise.online import OnlineSVC
from marginwise.perceptron import KernelPerceptron
from marginwise.tracking import TrackingSVC
from marginwise.tuning import OnlineSVCCV

__all__ = [
    "ActiveLearner",
    "CompressedSVC",
    "ExactOneClassSVM",
    "ExactRampSVC",
    "ExactSVC",
    "GapSVC",
    "KernelPerceptron",
    "LeaveOneOut",
    "ModelFileError",
    "OnlineSVC",
    "OnlineSVCCV",
    "TrackingSVC",
    "TuningPath",
    "load",
    "save",
]
__version__ = "0.1.0"
