"""Exchange of models with other programs: ONNX, C and JSON."""

from marginwise.exchange.converters import register_converters
from marginwise.exchange.onnx import to_onnx

__all__ = ["register_converters", "to_onnx"]
