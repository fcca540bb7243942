"""Invariance: an infinite training set of deformed images, made on demand."""

from marginwise.invariance.deformer import ImageDeformer, Originals
from marginwise.invariance.preview import contact_sheet
from marginwise.invariance.virtual import VirtualSet

__all__ = ["ImageDeformer", "Originals", "VirtualSet", "contact_sheet"]
