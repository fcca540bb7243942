"""Exchange of models with other programs: ONNX, LIBSVM, C and JSON."""

from marginwise.exchange.converters import register_converters
from marginwise.exchange.libsvm import from_libsvm, to_libsvm
from marginwise.exchange.onnx import to_onnx

__all__ = ["from_libsvm", "register_converters", "to_libsvm", "to_onnx"]
