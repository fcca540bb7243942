"""Compression: the approximation of a model by an expansion over fewer vectors."""
