"""Pipelines in model files: scikit-learn's transformers by an explicit table, without pickle."""
