"""[wang2009]: ramp loss SVMs, learned online."""

from reproduce.experiment import Paper

PAPER = Paper(
    "wang2009",
    "Z. Wang and S. Vucetic, “Fast Online Training of Ramp Loss Support Vector Machines”, ICDM "
    "2009.",
    "The paper learns an SVM with ramp loss one example at a time and keeps it optimal after each. "
    "Compared with the hinge loss, the model is sparser and, on noisy data, more accurate. Here, "
    "OnlineSVM^R is `ExactRampSVC`; OnlineASVM^R asks for the label of a row only if |f| ≤ 1, as "
    "`ExactRampSVC.wants` does; IDSVM, the incremental hinge SVM, is `ExactSVC`; PA is "
    '`KernelPerceptron(update="pa")`; LibSVM is scikit-learn\'s `SVC`. Our copy of the paper has '
    "lost the numbers of table 1, so that its text is what we compare with.",
)
