"""Figure 3: where the implementation with the paper's storage design spends its time, digit 8."""

from __future__ import annotations

from reproduce.experiment import Claim, Experiment, Results, judged
from reproduce.laskov2006 import scaling
from reproduce.laskov2006.figure1 import draw_shares, tables_of
from reproduce.laskov2006.scaling import DESIGN, KERNELS, MAIN, NAIVE, shares, sizes_of
from reproduce.laskov2006.storage import (
    AUGMENT,
    BETA,
    GAMMA,
    GATHER,
    INVERSE,
    KAPPA,
    KERNEL,
    SELECT,
)
from reproduce.laskov2006.wording import because

PLACE = "section 5.4, figure 3"
Profiles = dict[tuple[str, int], dict[str, float]]  # shares of operations by kernel and rows


def claims(results: Results) -> list[Claim]:
    keys = [(kernel, n) for kernel in KERNELS for n in sizes_of(results, kernel, MAIN)]
    if not keys:
        return []
    new, old = ({key: shares(results, *key, way) for key in keys} for way in (DESIGN, NAIVE))
    return [*claims_of_gamma(new, old), *claims_of_others(new, old), claim_of_order(new)]


def claims_of_gamma(new: Profiles, old: Profiles) -> list[Claim]:
    gone = max(one[SELECT] + one[GATHER] for one in new.values())
    kept = [new[key][GAMMA] / (old[key][GAMMA] + old[key][GATHER]) for key in new]
    return [
        Claim(
            "The design eliminates the selection of rows and the creation of matrices for γ.",
            PLACE,
            judged(gone < 0.5),
            "eliminated",
            f"at most {gone:.1f} % of the time, by construction",
        ),
        Claim(
            "The relative cost of γ stays as high as that of creating and multiplying matrices.",
            PLACE,
            judged(min(kept) >= 0.8),
            "as high",
            f"{min(kept):.2f} to {max(kept):.2f} times the share",
            because(
                min(kept) >= 0.8,
                "γ gains more from the design than the rest does: rows are added up in place "
                "instead of being copied first.",
            ),
        ),
    ]


def claims_of_others(new: Profiles, old: Profiles) -> list[Claim]:
    beta = [new[key][BETA] / old[key][BETA] for key in new]
    grown = [one[AUGMENT] for one in new.values()]
    updates, updates_before = (
        [one[KAPPA] + one[INVERSE] for one in found.values()] for found in (new, old)
    )
    unchanged = max(updates) <= 1.5 * max(updates_before)
    return [
        Claim(
            "The relative cost of β does not change.",
            PLACE,
            judged(max(beta) <= 1.5),
            "unaffected",
            f"{min(beta):.1f} to {max(beta):.1f} times the share",
            because(
                max(beta) <= 1.5,
                "β takes nearly as much time as before, while most other operations became "
                "cheaper, so that its share grows.",
            ),
        ),
        Claim(
            "Augmenting the kernel matrix costs virtually nothing.",
            PLACE,
            judged(max(grown) < 2),
            "virtually nothing",
            f"{min(grown):.0f} to {max(grown):.0f} % of the time",
            because(
                max(grown) < 2,
                "Writing a column into a matrix that is stored by rows misses the cache once per "
                "support vector, and NumPy copies a new kernel row into its place.",
            ),
        ),
        Claim(
            "The relative cost of updating the inverse matrix does not change.",
            PLACE,
            judged(unchanged),
            "unaffected",
            f"{min(updates):.0f} to {max(updates):.0f} % of the time, "
            f"{min(updates_before):.0f} to {max(updates_before):.0f} % in the naive version",
            because(
                unchanged,
                "The loop over the rows of Q costs a Python call per row, while most other "
                "operations became cheaper.",
            ),
        ),
    ]


def claim_of_order(new: Profiles) -> Claim:
    rows = {kernel: [n for one, n in new if one == kernel] for kernel, _ in new}
    small, large = (
        {kernel: new[kernel, end(sizes)] for kernel, sizes in rows.items()} for end in (min, max)
    )
    holds = all(longest(one) == KERNEL for one in small.values())
    holds = holds and all(longest(one) == GAMMA for one in large.values())
    return Claim(
        "Kernel values take the most time on small sets, γ on large ones.",
        PLACE,
        judged(holds),
        "kernel values, then γ",
        f"small: {listed(small)}; large: {listed(large)}",
        because(
            holds,
            "A row of kernel values is a single product of a matrix and a vector here, whereas "
            "the loop of γ costs a Python call per support vector.",
        ),
    )


def longest(profile: dict[str, float]) -> str:
    return max(profile, key=lambda operation: profile[operation])


def listed(found: dict[str, dict[str, float]]) -> str:
    return ", ".join(
        f"{kernel} {one[KERNEL]:.0f} and {one[GAMMA]:.0f} %" for kernel, one in found.items()
    )


EXPERIMENT = Experiment(
    "laskov2006",
    "Figure 3",
    "Profile of the implementation with the paper's storage design, digit 8",
    scaling.TEXT + "Algorithm 1 with algorithm 3 in NumPy: matrices have room to grow, kernel rows "
    "stay in place, features of support vectors lie side by side, and γ and Q are sums of whole "
    "rows (BLAS daxpy). The paper profiles its C++ program; its shares are not printed in numbers.",
    shares="figure4",
    tables=lambda results: tables_of(results, DESIGN),
    draw=lambda results, figure: draw_shares(results, figure, DESIGN),
    size=(10, 4),
    claims=claims,
)
