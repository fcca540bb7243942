"""What surrounds the code is consistent: metadata, workflows, citation, recipe, version."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from email import message_from_bytes
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import marginwise
from tests.docs.test_pages import LINK, ROOT

yaml = pytest.importorskip("yaml")

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
SOURCE = "https://github.com/marginwise/marginwise"
SITE = "https://marginwise.github.io/marginwise/"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LARGEST_SDIST = 2_500_000  # bytes


def parsed(name: str | Path) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the source distribution, which needs no compiler."""
    for tool in ("scikit_build_core", "nanobind", "hatch_fancy_pypi_readme"):
        if find_spec(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("sdist")
    code = f"from scikit_build_core.build import build_sdist; build_sdist({str(folder)!r})"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stdout + done.stderr
    (path,) = folder.iterdir()
    return path


def members(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def metadata(sdist: Path) -> Any:
    with tarfile.open(sdist) as archive:
        file = archive.extractfile(f"marginwise-{marginwise.__version__}/PKG-INFO")
        assert file is not None
        return message_from_bytes(file.read())


# -- the version ---------------------------------------------------------------------------------


def test_one_place_defines_the_version() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    places = [
        path
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"^__version__\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert places == [ROOT / "src" / "marginwise" / "__init__.py"]
    assert "version" not in parsed("CITATION.cff")
    assert not re.search(
        r"^project\(.*VERSION", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE
    )


def test_built_metadata_have_that_version(sdist: Path) -> None:
    assert sdist.name == f"marginwise-{marginwise.__version__}.tar.gz"
    assert metadata(sdist)["Version"] == marginwise.__version__


def test_changelog_and_recipe_are_of_that_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == marginwise.__version__
    assert parsed("recipe/recipe.yaml")["context"]["version"] == marginwise.__version__


# -- what is published ---------------------------------------------------------------------------


def test_project_urls() -> None:
    urls = PROJECT["urls"]
    assert urls["Source"] == SOURCE
    assert urls["Documentation"] == SITE
    assert all(url.startswith((SOURCE, SITE)) for url in urls.values())


def test_links_of_the_long_description_are_absolute(sdist: Path) -> None:
    message = metadata(sdist)
    assert message["Description-Content-Type"] == "text/markdown"
    text = message.get_payload()
    links = [*LINK.findall(text), *re.findall(r'\b(?:src|srcset|href)="([^"]*)"', text)]
    assert len(links) > 5
    assert [link for link in links if not re.match(r"https?://|#", link)] == []
    images = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text) + re.findall(r'\bsrc="([^"]*)"', text)
    assert images
    assert all(re.search(r"\.(png|svg)$", image) for image in images)
    assert not any("github.com/marginwise/marginwise/blob" in image for image in images)


def test_links_of_the_long_description_lead_to_files(sdist: Path) -> None:
    text = metadata(sdist).get_payload()
    kinds = {
        rf"{SOURCE}/blob/main/([^)\s\"#]+)": "{}",
        r"https://raw\.githubusercontent\.com/marginwise/marginwise/main/([^)\s\"]+)": "{}",
        rf"{SITE}([^)\s\"#]+)\.html": "docs/{}.md",
    }
    for pattern, file in kinds.items():
        names = [file.format(name) for name in re.findall(pattern, text)]
        assert [
            name for name in names if "auto_examples" not in name and not (ROOT / name).exists()
        ] == []


def test_source_distribution_is_lean_and_complete(sdist: Path) -> None:
    names = members(sdist)
    assert sdist.stat().st_size < LARGEST_SDIST
    for name in ("LICENSE", "CMakeLists.txt", "pyproject.toml", "tests/conftest.py"):
        assert name in names
    for folder in ("src", "cpp"):
        listed = subprocess.run(
            ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.split()
        assert set(listed) - names <= {name for name in listed if not (ROOT / name).exists()}
    unwanted = r"docs/|tests/docs/|\.github/|(benchmarks|reproduce)/results/|.*\.(so|pyc)$"
    assert [name for name in names if re.match(unwanted, name)] == []


def test_twine_accepts_the_source_distribution(sdist: Path) -> None:
    if find_spec("twine") is None:
        pytest.skip("twine is not installed")
    command = [sys.executable, "-m", "twine", "check", "--strict", str(sdist)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


# -- workflows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_complete(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["name"]
    assert True in workflow  # YAML reads the key `on` so
    jobs = workflow["jobs"]
    for job in jobs.values():
        assert ("uses" in job) != ("steps" in job)
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= jobs.keys()
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
        for step in job.get("steps", []):
            assert ("uses" in step) != ("run" in step)
            assert "@" in step.get("uses", "@")


def commands(workflow: str) -> str:
    jobs = parsed(f".github/workflows/{workflow}.yml")["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job.get("steps", []))


def test_distributions_are_checked() -> None:
    assert "twine check --strict" in commands("wheels")
    assert "abi3audit --strict" in commands("wheels")
    for workflow in ("ci", "release"):
        jobs = parsed(f".github/workflows/{workflow}.yml")["jobs"]
        assert jobs["distributions"]["uses"] == "./.github/workflows/wheels.yml"
    machines = parsed(".github/workflows/wheels.yml")["jobs"]["wheels"]["strategy"]["matrix"]["os"]
    assert {"ubuntu-latest", "ubuntu-24.04-arm", "macos-latest"} <= set(machines)


def test_releases_are_published_without_a_password() -> None:
    workflow = parsed(".github/workflows/release.yml")
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"]["id-token"] == "write"
    assert publish["environment"] == "pypi"
    assert any("gh-action-pypi-publish" in step.get("uses", "") for step in publish["steps"])
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    assert workflow[True]["release"]["types"] == ["published"]


def test_the_release_is_refused_unless_tag_and_changelog_agree(tmp_path: Path) -> None:
    """Run the workflow's own commands."""
    (tmp_path / "src/marginwise").mkdir(parents=True)
    (tmp_path / "src/marginwise/__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.3 (2027-01-31)\n\n## 1.2.2 (unreleased)\n")
    steps = parsed(".github/workflows/release.yml")["jobs"]["version"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]

    def codes(tag: str) -> list[int]:
        given = {"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
        return [
            subprocess.run(["bash", "-c", run], cwd=tmp_path, env=given, check=False).returncode
            for run in runs
        ]

    assert codes("v1.2.3") == [0, 0]
    assert codes("v1.2.2") == [1, 1]
    assert codes("v1.2.4") == [1, 1]


# -- other files ---------------------------------------------------------------------------------


def test_citation() -> None:
    citation = parsed("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == PROJECT["name"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert citation["url"] == PROJECT["urls"]["Documentation"]
    assert citation["message"]


def test_templates_for_issues() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = [path for path in folder.glob("*.yml") if path.name != "config.yml"]
    assert len(forms) == 2
    for form in map(parsed, forms):
        assert form["name"]
        assert form["description"]
        ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
        assert len(ids) == len(set(ids)) > 1
    assert all(
        link["url"].startswith("https://")
        for link in parsed(folder / "config.yml")["contact_links"]
    )
    assert "make lint" in (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").read_text()


def test_security_policy_says_where_to_report() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"{SOURCE}/security/advisories/new" in text
    for subject in ("Model files", "label server"):
        assert subject in text


def requirement(line: str) -> tuple[str, frozenset[str]]:
    """Return the name and the bounds of a requirement, of pip or of conda."""
    one = Requirement(line)
    return one.name.lower(), frozenset(map(str, one.specifier))


def test_the_recipe_has_the_requirements_of_the_package() -> None:
    recipe = parsed("recipe/recipe.yaml")["requirements"]
    for part, listed in (
        ("run", [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["tables"]]),
        ("host", PYPROJECT["build-system"]["requires"]),
    ):
        given = {requirement(line) for line in recipe[part]}
        assert given - {("python", frozenset()), ("pip", frozenset())} == set(
            map(requirement, listed)
        )


def test_the_checklist_of_a_release_names_all_checks() -> None:
    text = (ROOT / "RELEASING.md").read_text(encoding="utf-8")
    for word in (
        "make test",
        "make lint",
        "make stress",
        "abi3audit",
        "twine check",
        "trusted publisher",
    ):
        assert word in text
    targets = re.findall(r"`make ([a-z-]+)`", text)
    makefile = (ROOT / "Makefile").read_text()
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
