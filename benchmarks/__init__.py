"""Measurements of time, memory and accuracy."""
