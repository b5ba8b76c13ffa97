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
from dpmine.kernel.samplers import choice, finite_rows, laplace, opendp, sparse, staircase
from dpmine.language import queries, views

ROOT = Path(__file__).resolve().parents[2]
PROOFS = (ROOT / "docs" / "proofs.md").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
README = (ROOT / "README.md").read_text()
MECHANISMS = [
    laplace.ExactNoise,
    opendp.OpenDPNoise,
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


def code_named_in(text: str) -> list[str]:
    return sorted(set(re.findall(r"`(dpmine\.[\w.]+)`", text)))


@pytest.mark.parametrize("name", sorted({*code_named_in(PROOFS), *code_named_in(GLOSSARY)}))
def test_code_that_proofs_and_glossary_name_exists(name: str) -> None:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = inspect.getattr_static(found, attribute)
        return
    pytest.fail(f"{name} does not exist")


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
    from dpmine.kernel import scores

    found = [*subclasses(queries.Question), *subclasses(views.Step), *subclasses(scores.Score), *MECHANISMS]
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
