"""Every mechanism states its claim, its proof and its limits beside its code."""

from __future__ import annotations

import inspect

import pytest

from dpmine.kernel.mechanisms.private_tree import grow_private_tree
from dpmine.kernel.samplers.choice import exponential, permute_and_flip
from dpmine.kernel.samplers.finite_rows import drawn_output
from dpmine.kernel.samplers.laplace import ExactNoise
from dpmine.kernel.samplers.sparse import sparse_counts
from dpmine.kernel.samplers.staircase import box_staircase
from dpmine.owner.opendp_noise import OpenDPNoise

FIELDS = ["Claim", "Sensitivity", "Proof", "Assumes", "Not covered", "Reference"]


@pytest.mark.parametrize(
    "mechanism",
    [
        ExactNoise,
        OpenDPNoise,
        exponential,
        permute_and_flip,
        sparse_counts,
        grow_private_tree,
        box_staircase,
        drawn_output,
    ],
    ids=lambda one: one.__name__,
)
def test_a_mechanism_states_its_claim_and_its_limits(mechanism: object) -> None:
    lines = (inspect.getdoc(mechanism) or "").splitlines()
    stated = [field for line in lines for field in FIELDS if line.startswith(f"{field} ")]
    assert stated == FIELDS
