"""[ertekin2007]: active learning for imbalanced classes."""

from reproduce.experiment import Paper

PAPER = Paper(
    "ertekin2007",
    "Ş. Ertekin, J. Huang, L. Bottou and C. L. Giles, “Learning on the Border: Active Learning in "
    "Imbalanced Data Classification”, CIKM 2007.",
    "The paper uses active learning with LASVM to cope with rare classes: the next example is the "
    "one closest to the boundary among 59 random examples, and learning stops when the number of "
    "support vectors levels off. Here, LASVM is `OnlineSVC`, active learning is `ActiveLearner` "
    "with `SupportVectorPlateau`, and undersampling and SMOTE are those of imbalanced-learn. "
    "CiteSeer is not available to us, so 13 of the paper's 18 data sets remain. Times are those of "
    "one thread.",
)
