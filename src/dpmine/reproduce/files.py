"""What a finished experiment leaves in its folder: means, paired tests and claims as CSV, pictures as PNG."""

from pathlib import Path

from dpmine.reproduce.claims import checked
from dpmine.reproduce.experiments import Outcome
from dpmine.reproduce.plots import draw
from dpmine.reproduce.significance import compare
from dpmine.reproduce.summaries import summarise, write_csv, write_summary


def write_files(outcome: Outcome, folder: Path) -> list[Path]:
    """Write all of them and return their paths."""
    name = outcome.experiment.name
    means = folder / f"{name}.csv"
    write_summary(summarise(outcome), means)
    written = [means]
    if outcome.experiment.comparison is not None:
        tests = folder / f"{name}.tests.csv"
        write_csv((compared.form() for compared in compare(outcome)), tests)
        written.append(tests)
    if outcome.experiment.claims:
        claims = folder / f"{name}.claims.csv"
        write_csv((claim.form() for claim in checked(outcome)), claims)
        written.append(claims)
    return written + draw(outcome, folder) + [drawn(folder) for drawn in outcome.experiment.drawings]
