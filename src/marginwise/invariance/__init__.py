"""Invariance: deformed training images, generated on demand."""

from marginwise.invariance.deformer import ImageDeformer, Originals
from marginwise.invariance.preview import contact_sheet
from marginwise.invariance.virtual import VirtualSet

__all__ = ["ImageDeformer", "Originals", "VirtualSet", "contact_sheet"]
