"""Models for other programs, and models of other programs."""

from marginwise.exchange.libsvm import from_libsvm, to_libsvm

__all__ = ["from_libsvm", "to_libsvm"]
