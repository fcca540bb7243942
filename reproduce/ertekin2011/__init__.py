"""[ertekin2011]: LASVM-G, LASVM-NC and LASVM-I."""

from reproduce.experiment import Paper

PAPER = Paper(
    "ertekin2011",
    "Ş. Ertekin, L. Bottou and C. L. Giles, “Nonconvex Online Support Vector Machines”, IEEE "
    "Transactions on Pattern Analysis and Machine Intelligence 33(2), 2011.",
    "The paper controls LASVM by the gap between primal and dual (LASVM-G), and makes it robust "
    "against wrong labels by the ramp loss (LASVM-NC) or by ignoring outliers (LASVM-I). FULL SVM "
    "is LASVM-G that never removes examples. Here, all four are `GapSVC`: `clean_every=None` "
    '(FULL), the defaults (G), `loss="ramp"` (NC) and `loss="filter"` (I). Each learns one epoch '
    "without finishing, with s = −1, on one thread. Sections and figures are numbered as in the "
    "authors' manuscript, “Ignorance is Bliss: Non-Convex Online Support Vector Machines”.",
)
