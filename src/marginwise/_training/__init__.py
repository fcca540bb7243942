"""How examples reach a model: feeds, selection, sifting, the loop and its checkpoints."""
