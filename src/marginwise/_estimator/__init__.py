"""Shared parts of the estimators."""
