"""Pipelines in model files: an explicit table of scikit-learn's transformers, without pickle."""
