"""Claims of the paper that no experiment here covers."""

from reproduce.experiment import NOT_TESTABLE, Claim

CLAIMS = [
    Claim(
        "LASVM×1 calls the kernel function much less often than LIBSVM.",
        "section 3.4, figure 8",
        NOT_TESTABLE,
        "0.32 to 0.99 times as often",
        "ours are in figure 8",
        "scikit-learn's SVC does not count its kernel evaluations.",
    ),
    Claim(
        "On the 521,012 rows of Forest, LASVM×1 matches the error of LIBSVM.",
        "section 3.4, figure 8",
        NOT_TESTABLE,
        "4.83 % against 4.84 %",
        "–",
        "Only a 16 % sample of the set is available here.",
    ),
]
