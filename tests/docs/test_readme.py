"""What the pages say of the project as a whole; tests/docs/test_guides.py runs their blocks."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_extras_are_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    listed = page.partition("extras are ")[2].partition("\n\n")[0]
    extras = set(project["project"]["optional-dependencies"])
    assert set(re.findall(r"`(\w+)`", listed)) == extras


def test_the_readme_is_short() -> None:
    """The first page is for the first minute: what needs a second sentence goes to a guide."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.split()) <= 1100


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(
            r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8")
        )
        if not (page.parent / link).exists()
    ]
    assert not broken


def test_every_page_is_in_the_sidebar_once() -> None:
    docs = ROOT / "docs"
    texts = {
        page.relative_to(docs).as_posix(): page.read_text("utf-8") for page in docs.rglob("*.md")
    }
    trees = re.findall(r"```\{toctree\}\n(.*?)```", "\n".join(texts.values()), re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    entries = [line.partition("<")[2].strip(">") or line for line in lines]
    named = [f"{entry}.md" for entry in entries if "*" not in entry]
    others = [f"{entry}.md" for entry in entries if "*" in entry]
    pages = set(texts) - {"index.md"}
    rest = [page for page in pages - set(named) if any(map(Path(page).match, others))]
    assert sorted([*named, *rest]) == sorted(pages)


def test_figures_of_the_overview_are_on_the_pages_it_links() -> None:
    """When a study is run anew, its figures change in the overview too."""
    page = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]*\d[^|]*) \|.*\]\((.*?)\) \|$", page, re.MULTILINE)
    assert len(rows) == 8
    for figure, link in rows:
        source = (ROOT / "docs" / link).read_text(encoding="utf-8")
        missing = [number for number in re.findall(r"\d[\d.,]*", figure) if number not in source]
        assert not missing, f"{link} no longer has {missing}"


def test_speed_in_the_readme_is_that_of_the_benchmark() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| all pairs.* \| ([\d.]+) \|$", page, re.MULTILINE)
    source = (ROOT / "docs" / "results" / "speed.md").read_text(encoding="utf-8").splitlines()[2]
    assert found == re.findall(r"\d+\.\d+", source)[:3]
