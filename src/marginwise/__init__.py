"""Kernel machines that learn one example at a time, choose their examples, and can forget them."""

from marginwise.model_io import ModelFileError, load, save
from marginwise.online import OnlineSVC

__all__ = ["ModelFileError", "OnlineSVC", "load", "save"]
__version__ = "0.1.0"
