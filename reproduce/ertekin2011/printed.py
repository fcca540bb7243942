"""The figures of [ertekin2011, table 3]: the mean of ten runs of one epoch, by set and method."""

from __future__ import annotations

METHODS = ("FULL", "G", "NC", "I")
COLUMNS = ("adult", "mnist-8", "banana", "reuters", "usps-0", "usps-0-noise")

# By figure and method, in the order of the columns. Accuracy, PRBEP, AUC and g-means in %, kernel
# evaluations in millions, seconds of training on a machine of its time.
_PRINTED: dict[str, dict[str, tuple[float, ...]]] = {
    "accuracy": {
        "FULL": (84.87, 99.25, 90.03, 97.19, 99.54, 98.43),
        "G": (84.81, 99.27, 89.81, 97.19, 99.54, 99.42),
        "NC": (85.01, 99.15, 89.97, 97.16, 99.52, 99.51),
        "I": (84.82, 99.18, 89.84, 97.16, 99.57, 99.49),
    },
    "prbep": {
        "FULL": (67.55, 95.98, 88.54, 76.48, 98.62, 98.53),
        "G": (67.18, 96.18, 88.46, 76.42, 98.66, 98.50),
        "NC": (67.85, 95.64, 88.61, 76.42, 98.59, 98.53),
        "I": (67.71, 95.80, 88.54, 76.20, 98.65, 98.56),
    },
    "auc": {
        "FULL": (89.7, 99.8, 96.5, 98.7, 99.9, 99.8),
        "G": (89.3, 99.8, 96.6, 98.7, 99.9, 99.8),
        "NC": (90.1, 99.8, 96.5, 98.7, 99.9, 99.8),
        "I": (89.9, 99.8, 96.4, 98.7, 99.9, 99.8),
    },
    "g_mean": {
        "FULL": (73.13, 97.29, 89.51, 81.00, 98.93, 98.42),
        "G": (72.87, 97.42, 89.30, 81.17, 98.92, 98.42),
        "NC": (75.03, 96.86, 89.47, 81.19, 98.99, 98.74),
        "I": (73.72, 97.06, 89.38, 81.06, 98.89, 98.72),
    },
    "support_vectors": {
        "FULL": (11831, 3412, 947, 1122, 384, 2455),
        "G": (11266, 3157, 941, 1120, 383, 2288),
        "NC": (4609, 2653, 551, 1086, 372, 752),
        "I": (5776, 2722, 669, 1093, 373, 937),
    },
    "kernel_evaluations": {
        "FULL": (709.0, 2269.7, 8.51, 33.2, 27, 30.2),
        "G": (233.0, 182.6, 3.8, 9.9, 5.2, 14.3),
        "NC": (116.9, 153.5, 3.1, 9.9, 5.2, 7.3),
        "I": (105.9, 121.2, 2.0, 8, 3.2, 6.8),
    },
    "seconds": {
        "FULL": (1186, 4757.4, 1, 14.4, 43.7, 36),
        "G": (479, 547.1, 0.6, 5.3, 17.3, 17),
        "NC": (129, 526.0, 0.4, 4.7, 8, 8.3),
        "I": (92, 491.4, 0.3, 3.6, 5.8, 6),
    },
}


def printed(figure: str, method: str, name: str) -> float:
    """Return what the paper has for a method on a set."""
    return _PRINTED[figure][method][COLUMNS.index(name)]
