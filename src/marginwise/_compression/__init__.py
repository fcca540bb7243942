"""Smaller models: the expansion of a model over fewer vectors."""
