"""Figure 3: where the implementation with the paper's storage design spends its time, digit 8."""

from __future__ import annotations

from reproduce.experiment import Claim, Experiment, Results, judged
from reproduce.laskov2006 import scaling
from reproduce.laskov2006.figure1 import draw_shares, tables_of
from reproduce.laskov2006.scaling import DESIGN, KERNELS, MAIN, NAIVE, shares, sizes_of
from reproduce.laskov2006.storage import AUGMENT, GAMMA, GATHER, INVERSE, KAPPA, KERNEL, SELECT
from reproduce.laskov2006.wording import because


def claims(results: Results) -> list[Claim]:
    keys = [(kernel, n) for kernel in KERNELS for n in sizes_of(results, kernel, MAIN)]
    if not keys:
        return []
    new, old = ({key: shares(results, *key, way) for key in keys} for way in (DESIGN, NAIVE))
    ends = {kernel: sizes_of(results, kernel, MAIN) for kernel in KERNELS}
    small = {kernel: new[kernel, sizes[0]] for kernel, sizes in ends.items()}
    large = {kernel: new[kernel, sizes[-1]] for kernel, sizes in ends.items()}
    place = "section 5.4, figure 3"
    gone = max(one[SELECT] + one[GATHER] for one in new.values())
    kept = [new[key][GAMMA] / (old[key][GAMMA] + old[key][GATHER]) for key in keys]
    grown = [one[AUGMENT] for one in new.values()]
    last = {
        way: [sum(one[name] for name in (KAPPA, INVERSE)) for one in found.values()]
        for way, found in (("design", new), ("naive", old))
    }
    order = all(max(one, key=one.get) == KERNEL for one in small.values())  # type: ignore[arg-type]
    gamma = all(max(one, key=one.get) == GAMMA for one in large.values())  # type: ignore[arg-type]
    return [
        Claim(
            "The design eliminates the selection of rows and the creation of matrices for γ.",
            place,
            judged(gone < 0.5),
            "eliminated",
            f"at most {gone:.1f} % of the time",
        ),
        Claim(
            "The relative cost of γ stays as high as that of creating and multiplying matrices.",
            place,
            judged(min(kept) >= 0.8),
            "as high",
            f"{min(kept):.2f} to {max(kept):.2f} times the share",
            because(
                min(kept) >= 0.8,
                "γ gains more from the design than the rest does: rows are added up in place "
                "instead of being copied first.",
            ),
        ),
        Claim(
            "Augmenting the kernel matrix costs virtually nothing.",
            place,
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
            place,
            judged(max(last["design"]) <= 1.5 * max(last["naive"])),
            "unaffected",
            f"{min(last['design']):.0f} to {max(last['design']):.0f} % of the time, "
            f"{min(last['naive']):.0f} to {max(last['naive']):.0f} % in the naive version",
            because(
                max(last["design"]) <= 1.5 * max(last["naive"]),
                "The loop over the rows of Q costs a Python call per row, and most other "
                "operations became cheaper.",
            ),
        ),
        Claim(
            "Kernel values take the most time on small sets, γ on large ones.",
            place,
            judged(order and gamma),
            "kernel values, then γ",
            f"small: {listed(small)}; large: {listed(large)}",
            because(
                order and gamma,
                "A row of kernel values is a single product of a matrix and a vector here, whereas "
                "the loop of γ costs a Python call per support vector.",
            ),
        ),
    ]


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
