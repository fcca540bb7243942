"""Exchange of models with other programs: ONNX, LIBSVM, C and JSON."""

from marginwise.exchange.c_source import to_c
from marginwise.exchange.converters import register_converters
from marginwise.exchange.json_model import to_json
from marginwise.exchange.libsvm import from_libsvm, to_libsvm
from marginwise.exchange.onnx import to_onnx

__all__ = ["from_libsvm", "register_converters", "to_c", "to_json", "to_libsvm", "to_onnx"]
