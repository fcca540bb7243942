"""Training: the loop, its feeds of rows, selection, sifting and checkpoints."""
