"""[loosli2007]: invariant SVMs, learned from deformed digits that are generated on demand."""

from reproduce.experiment import Paper

PAPER = Paper(
    "loosli2007",
    "G. Loosli, S. Canu and L. Bottou, “Training Invariant Support Vector Machines using Selective "
    "Sampling”, Large Scale Kernel Machines, MIT Press, 2007.",
    "The paper trains LASVM on up to 8.1 million deformed images of MNIST's digits, which are "
    "generated on demand, and selects the informative ones. Here, LASVM is `OnlineSVC`, and the "
    "deformed images, called variants, come from `VirtualSet` and `ImageDeformer`. Models are "
    "one-vs-rest with C = 1000, as in the paper, unless stated otherwise. Our copy of the paper "
    "has its text but not its pictures, so that figures are compared with what the text says. The "
    "paper prints γ = 0.006 and does not say how pixels are scaled; for pixels from −1 to 1, as in "
    "the earlier LASVM experiments, this equals γ = 0.024 for our pixels from 0 to 1. Its unit of "
    "the strength of deformations is not stated either; ours is that of `ImageDeformer`. Figures "
    "1, 2 and 4 to 6 are drawings without measurements; the guide to images and invariance shows "
    "our fields, tangents and variants.",
)
