"""Print requirements that pin the declared dependencies to their minimum versions.

`make test-minimum` installs them in an environment of its own. Of the tools, pytest is pinned, too,
because scikit-learn's estimator checks require one of their time; the others are the newest that
the pinned versions permit.
"""

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

EXTRAS = ("tables", "plot", "reproduce", "skops")  # those that users install
PINNED_TOOLS = ("pytest",)
FREE_TOOLS = ("hypothesis", "pandas", "psutil", "pytest-xdist")
CEILINGS = (
    "pandas<3",  # scikit-learn 1.6 cannot read the string columns of later versions
    "pyparsing<3.2",  # later versions deprecate what matplotlib 3.8 calls
)


def pinned(requirement: Requirement) -> str:
    """Return a requirement with its lower bound as the only version."""
    lowest = [clause.version for clause in requirement.specifier if clause.operator == ">="]
    if len(lowest) != 1:
        raise ValueError(f"{requirement} must declare one minimum version (>=) in pyproject.toml.")
    marker = f"; {requirement.marker}" if requirement.marker else ""
    return f"{requirement.name}=={lowest[0]}{marker}"


def minimum_requirements(project: dict) -> list[str]:
    """Return the pinned dependencies of the package and its extras, and the tools of the tests."""
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    tools = {Requirement(line).name: Requirement(line) for line in extras["dev"]}
    fixed = [*map(Requirement, listed), *(tools[name] for name in PINNED_TOOLS)]
    free = {str(tools[name]) for name in FREE_TOOLS}
    return sorted({pinned(one) for one in fixed} | free | set(CEILINGS))


if __name__ == "__main__":
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    sys.stdout.write(
        "\n".join(minimum_requirements(tomllib.loads(pyproject.read_text())["project"]))
    )
    sys.stdout.write("\n")
