"""Designing noise: what is known beforehand about an answer (its range, a prior) buys accuracy at the same epsilon.

Everything here works on public facts alone. What comes out is a mechanism on a finite grid, whose table of whole numbers
(`dpmine.noise.finite_tables`) the kernel checks again, exactly, before it draws from it.
"""

from dpmine.design.candidates import Candidate, Chosen, pick
from dpmine.design.constructions import heuristic, randomised_response, truncated_geometric
from dpmine.design.linear_programs import Optimum, bayesian_optimum, risk_averse_optimum
from dpmine.design.priors import Prior, prior
from dpmine.design.setting import Setting

__all__ = [
    "Candidate",
    "Chosen",
    "Optimum",
    "Prior",
    "Setting",
    "bayesian_optimum",
    "heuristic",
    "pick",
    "prior",
    "randomised_response",
    "risk_averse_optimum",
    "truncated_geometric",
]
