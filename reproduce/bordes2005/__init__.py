"""[bordes2005]: LASVM, and the selection of examples."""

from reproduce.experiment import Paper

PAPER = Paper(
    "bordes2005",
    "A. Bordes, S. Ertekin, J. Weston and L. Bottou, “Fast Kernel Classifiers with Online and "
    "Active Learning”, Journal of Machine Learning Research 6, 2005.",
    "The paper introduces LASVM, an online SVM whose accuracy after a single pass over the data is "
    "close to that of the SVM solution, and shows how the selection of examples gives smaller "
    "models. Here, LASVM is `OnlineSVC`; LIBSVM is scikit-learn's `SVC` or, where the text says "
    "so, our own converging solver; and times are those of one thread. Compare times as ratios: "
    "the paper's computers are two decades older.",
)
