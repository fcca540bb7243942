"""The native model, what shapes it, and its state."""
