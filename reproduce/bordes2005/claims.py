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
    Claim(
        "With noisy labels, LIBSVM has a slightly higher error and a much larger number of support "
        "vectors, and a RANDOM pass of LASVM replicates this.",
        "section 4.4, figure 15",
        NOT_TESTABLE,
        "read from the figure",
        "RANDOM after 8,000 examples: figure 14",
        "The problem of all 60,000 noisy examples was not solved, because C = 1000 makes it slow.",
    ),
]
