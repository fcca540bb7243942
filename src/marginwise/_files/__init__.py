"""Writing, reading and validation of model files."""
