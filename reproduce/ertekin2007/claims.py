"""Claims of the paper that no experiment here covers."""

from reproduce.experiment import NOT_TESTABLE, Claim

CLAIMS = [
    Claim(
        "The classes are less imbalanced within the margin than in the entire data.",
        "section 3, figure 3",
        NOT_TESTABLE,
        "a drawing; real data are said to confirm it",
        "table 1 has the ratio among the support vectors",
        "The runs do not store which training examples are within the margin.",
    ),
    Claim(
        "On large data sets, the preprocessing by SMOTE dominates the training time.",
        "section 6, table 3",
        NOT_TESTABLE,
        "MNIST: 83,339 s in all",
        "table 3 has the sum of both",
        "The runs store only the time of resampling and training together.",
    ),
]
