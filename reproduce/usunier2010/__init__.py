"""[usunier2010]: incremental SVMs that track the sequence of solutions."""

from reproduce.experiment import Paper

PAPER = Paper(
    "usunier2010",
    "N. Usunier, A. Bordes and L. Bottou, “Guarantees for Approximate Incremental SVMs”, AISTATS "
    "2010.",
    "The paper bounds the average duality gap of two incremental algorithms, which take K steps of "
    "dual coordinate ascent per example, for any order of the examples. Its experiments show that "
    "the gap stays level during a pass, that far fewer steps suffice than the bound asks for, and "
    "that active selection gives low test errors early. Both algorithms are `TrackingSVC`: "
    "`process=False` is Algorithm 1, `process=True` is Algorithm 2.",
)
