"""Model files: how they are written, read and checked."""
