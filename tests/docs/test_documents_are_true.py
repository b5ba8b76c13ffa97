"""The documents keep up with the code: what they name exists, and what exists is named."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from dpmine.cli.main import app
from dpmine.kernel.mechanisms import private_tree
from dpmine.kernel.samplers import choice, finite_rows, laplace, sparse, staircase
from dpmine.language import queries, views
from dpmine.owner.opendp_noise import OpenDPNoise

ROOT = Path(__file__).resolve().parents[2]
PROOFS = (ROOT / "docs" / "proofs.md").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
README = (ROOT / "README.md").read_text()
MECHANISMS = [
    laplace.ExactNoise,
    OpenDPNoise,
    choice.exponential,
    choice.permute_and_flip,
    sparse.sparse_counts,
    private_tree.grow_private_tree,
    staircase.box_staircase,
    finite_rows.drawn_output,
]
FIELDS = ["Claim", "Sensitivity", "Proof", "Assumes", "Not covered", "Reference"]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.__name__)
def test_every_mechanism_states_claim_sensitivity_proof_and_limits(mechanism: object) -> None:
    text = inspect.getdoc(mechanism) or ""
    assert [field for field in FIELDS if not re.search(rf"^{field} +\S", text, re.MULTILINE)] == []


DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text() for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
}


def code_named_in(text: str) -> list[str]:
    return sorted(set(re.findall(r"`(dpmine\.[\w.]+)`", text)))


def exists(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for attribute in parts[cut:]:
                found = inspect.getattr_static(found, attribute)
        except AttributeError:
            return False
        return True
    return False


@pytest.mark.parametrize("document", DOCUMENTS)
def test_code_that_documents_name_exists(document: str) -> None:
    assert [name for name in code_named_in(DOCUMENTS[document]) if not exists(name)] == []


@pytest.mark.skipif(not (ROOT / "CONTRIBUTING.md").exists(), reason="some documents are in the repository only")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_documents_name_or_link_to_exist(document: str) -> None:
    """Files are named from the root or from the package."""
    text = DOCUMENTS[document]
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    assert [link for link in links if not ((ROOT / document).parent / link).exists()] == []
    named = {name for name in re.findall(r"`([\w/]+/\w+\.py)`", text) if not name.endswith("/x.py")}
    beside = [ROOT, ROOT / "src" / "dpmine"]
    assert [name for name in sorted(named) if not any((place / name).exists() for place in beside)] == []


def test_private_functions_that_proofs_name_exist() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"`(_\w+)`", PROOFS))
    assert len(named) >= 4
    assert [name for name in sorted(named) if f"def {name}(" not in source] == []


def headings_of(text: str) -> set[str]:
    """The headings as links name them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_sections_that_documents_link_to_exist(document: str) -> None:
    missing = []
    for file, section in re.findall(r"\]\(([^)\s#]*)#([^)\s]+)\)", DOCUMENTS[document]):
        linked = (ROOT / document).parent / file if file else ROOT / document
        if section not in headings_of(linked.read_text()):
            missing.append(f"{file}#{section}")
    assert missing == []


WORD = re.compile(r"- \*\*([a-z ]+)\*\*: (.+[.)]) (`dpmine[\w.]*`(?:, `dpmine[\w.]*`)*)")


def test_the_glossary_says_of_each_word_what_it_means_and_where_it_lives() -> None:
    entries = [line for line in GLOSSARY.splitlines() if line.startswith("- ")]
    found = [WORD.fullmatch(line) for line in entries]
    assert [line for line, match in zip(entries, found, strict=True) if match is None] == []
    words = [match.group(1) for match in found if match is not None]
    assert len(words) >= 24
    assert words == sorted(set(words))
    assert {"cell", "view", "unit", "phantom", "staying whole"} <= set(words)


def subclasses(cls: type) -> list[type]:
    return [found for sub in cls.__subclasses__() for found in (subclasses(sub) or [sub])]


def test_every_question_step_and_mechanism_has_its_proof() -> None:
    """In names and on codes: what a mechanism may rest on is what the class on codes requires."""
    from dpmine.codes import rows, splits
    from dpmine.codes.queries import ResolvedQuestion
    from dpmine.kernel import scores

    in_names = [*subclasses(queries.Question), *subclasses(views.Step)]
    on_codes = [
        found for base in (ResolvedQuestion, rows.RowKey, rows.RowStep, splits.ResolvedSplits) for found in subclasses(base)
    ]
    found = [*in_names, *on_codes, *subclasses(scores.Score), *MECHANISMS]
    wanted = [cls for cls in found if cls.__module__.startswith("dpmine.")]  # other tests make subclasses of their own
    assert len(wanted) >= 14
    assert [cls.__name__ for cls in wanted if f"{cls.__module__}.{cls.__name__}`" not in PROOFS] == []


def commands(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    listed = getattr(group, "commands", None)
    if listed is None:
        return [path]
    return [found for name, command in listed.items() for found in commands(command, (*path, name))]


def test_the_readme_names_every_command() -> None:
    every = commands(typer.main.get_command(app))
    assert len(every) >= 12
    missing = [" ".join(path) for path in every if not re.search(r"dpmine " + path[0], README) or path[-1] not in README]
    assert missing == []


def test_the_readme_example_runs_as_printed(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    command = [sys.executable, "-c", example.group(1)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "differentially private" in done.stdout
    assert len([line for line in example.group(1).splitlines() if line.strip() and "import" not in line]) <= 10


def test_no_document_names_a_machine_or_a_registry() -> None:
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "constraints.txt", ROOT / "pyproject.toml"]
    forbidden = re.compile("/" + "work/|/" + "root/|https?://(?!www.apache.org)|file://")
    assert [str(path.relative_to(ROOT)) for path in texts if forbidden.search(path.read_text())] == []
