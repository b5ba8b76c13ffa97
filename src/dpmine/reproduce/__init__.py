"""Experiments of published papers run again, and the trade-off between accuracy, epsilon and rows as a tool.

Everything here measures against true labels, so it is for generated and for public data only.
"""

from dpmine.base.errors import RequestError
from dpmine.reproduce.diffgen import diffgen_experiments
from dpmine.reproduce.experiments import Experiment
from dpmine.reproduce.friedman import friedman_experiments
from dpmine.reproduce.usc import usc_experiments
from dpmine.reproduce.xiong import xiong_experiments

__all__ = ["Experiment", "all_experiments", "experiment"]


def all_experiments() -> dict[str, Experiment]:
    """Every experiment by its name, in the order of the papers."""
    papers = (friedman_experiments, diffgen_experiments, xiong_experiments, usc_experiments)
    return {found.name: found for experiments in papers for found in experiments()}


def experiment(name: str) -> Experiment:
    """The experiment of that name, or an error that lists the names."""
    known = all_experiments()
    if name not in known:
        raise RequestError(f"There is no experiment {name!r}. Choose one of: {', '.join(known)}; or all.")
    return known[name]
