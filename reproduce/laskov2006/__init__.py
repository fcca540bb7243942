"""[laskov2006]: the incremental SVM, its design and its applications."""

from reproduce.experiment import Paper

PAPER = Paper(
    "laskov2006",
    "P. Laskov, C. Gehl, S. Krüger and K.-R. Müller, “Incremental Support Vector Learning: "
    "Analysis, Implementation and Applications”, Journal of Machine Learning Research 7, 2006.",
    "The paper analyses the exact incremental SVM of Cauwenberghs and Poggio, redesigns its "
    "storage so that training takes a fraction of the time, and applies it to learning with "
    "limited memory and to active learning. Here, the redesigned algorithm is `ExactSVC`. The "
    "paper's Matlab program is replaced by algorithm 1 in plain NumPy, which selects submatrices "
    "by copying them. A second version in NumPy has the paper's storage design, which separates "
    "the effect of the design from that of the language. Compare times as ratios: the paper's "
    "computers are two decades older. Operations have the paper's symbols: S are the examples "
    "with 0 < α < C, Q is the inverse of their bordered kernel matrix, β is the response of their "
    "coefficients to a change of the new coefficient, γ that of the gradients, κ the pivot of the "
    "update of Q, and K_sr the submatrix of the kernel matrix that γ needs.",
)
