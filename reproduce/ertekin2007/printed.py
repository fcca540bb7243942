"""The numbers of tables 1, 3 and 4 of [ertekin2007], without those of CiteSeer.

Table 4 ranks the columns of table 3, so only its averages are listed.
"""

from __future__ import annotations

from typing import NamedTuple


class Table1(NamedTuple):
    """g-means, AUC and share of examples used by AL in %; class ratios of data and model."""

    g_mean_batch: float
    g_mean_al: float
    auc_batch: float
    auc_al: float
    imbalance: float
    ratio: float
    efficiency: float


class Table3(NamedTuple):
    """PRBEP in %, and seconds of training."""

    batch: float
    us: float
    smote: float
    dc: float
    al: float
    smote_seconds: int
    al_seconds: int


METHODS = ("Batch", "US", "SMOTE", "DC", "AL")  # in the order of tables 3 and 4

TABLE1 = {
    "corn": Table1(85.55, 86.59, 99.95, 99.95, 41.9, 3.13, 11.6),
    "crude": Table1(88.34, 89.51, 99.74, 99.74, 19.0, 2.64, 22.6),
    "grain": Table1(91.56, 91.56, 99.91, 99.91, 16.9, 3.08, 29.6),
    "interest": Table1(78.45, 78.46, 99.01, 99.04, 21.4, 2.19, 30.9),
    "money-fx": Table1(81.43, 82.79, 98.69, 98.71, 13.4, 2.19, 18.7),
    "ship": Table1(75.66, 74.92, 99.79, 99.80, 38.4, 4.28, 20.6),
    "trade": Table1(82.52, 82.52, 99.23, 99.26, 20.1, 2.22, 15.4),
    "wheat": Table1(89.54, 89.55, 99.64, 99.69, 35.7, 3.38, 11.6),
    "abalone-7": Table1(100.0, 100.0, 100.0, 100.0, 9.7, 1.38, 24.0),
    "letter-A": Table1(99.28, 99.54, 99.99, 99.99, 24.4, 1.46, 27.8),
    "satimage-4": Table1(82.41, 83.30, 95.13, 95.75, 9.7, 2.62, 41.7),
    "usps-0": Table1(99.22, 99.25, 99.98, 99.98, 4.9, 1.50, 6.8),
    "mnist-8": Table1(98.47, 98.37, 99.97, 99.97, 9.3, 1.59, 11.7),
}

TABLE3 = {
    "corn": Table3(91.07, 78.57, 91.07, 89.28, 89.29, 87, 16),
    "crude": Table3(87.83, 85.70, 87.83, 87.83, 87.83, 129, 41),
    "grain": Table3(92.62, 89.93, 91.44, 91.94, 91.94, 205, 50),
    "interest": Table3(76.33, 74.04, 77.86, 75.57, 75.57, 116, 42),
    "money-fx": Table3(73.74, 74.30, 75.42, 75.42, 76.54, 331, 35),
    "ship": Table3(86.52, 86.50, 88.76, 89.89, 89.89, 49, 32),
    "trade": Table3(77.77, 76.92, 77.77, 77.78, 78.63, 215, 38),
    "wheat": Table3(84.51, 81.61, 84.51, 84.51, 85.92, 54, 25),
    "abalone-7": Table3(100.0, 100.0, 100.0, 100.0, 100.0, 16, 4),
    "letter-A": Table3(99.48, 96.45, 99.24, 99.35, 99.35, 86, 3),
    "satimage-4": Table3(73.46, 68.72, 73.46, 73.93, 73.93, 63, 21),
    "usps-0": Table3(98.44, 98.44, 98.13, 98.44, 98.75, 4328, 13),
    "mnist-8": Table3(97.63, 97.02, 97.74, 97.63, 97.74, 83339, 1048),
}

TABLE4_AVERAGES = (2.28, 4.00, 2.22, 2.17, 1.50)  # over all 18 sets
