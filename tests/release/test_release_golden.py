"""The running example of the DiffGen paper: Tables 1.a to 1.d, Figures 1 and 2, with the noise turned off."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.choices import Scripted, choosing
from support.opening import HUGE, fitted, opened
from support.releases import SCORES, TABLE_1A, paper_schema, shown_groups

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.models.cuts import Cut, NominalCut, NumericCut, evenly_cut, finest_cut, root_cut
from dpmine.release.contingency import ContingencyTable
from dpmine.release.counting import count_groups
from dpmine.release.estimator import ReleaseEstimator

YEARS = paper_schema()
TWO_AGES = paper_schema(high=61, step=22)  # grid points 18 and 40: Figure 1's intervals, and no other cut
ONE_AGE = paper_schema(high=64, step=47)
Groups = dict[tuple[str, ...], list[int]]

TABLE_1B: Groups = {("Professional",): [2, 2], ("Artist",): [2, 2]}
TABLE_1D: Groups = {
    ("Professional", "18 to <40"): [2, 1],
    ("Professional", "40 on"): [0, 1],
    ("Artist", "18 to <40"): [2, 2],
    ("Artist", "40 on"): [0, 0],
}
TABLE_1C: Groups = {
    ("Engineer", "18 to <40"): [1, 1],
    ("Engineer", "40 on"): [0, 0],
    ("Lawyer", "18 to <40"): [1, 0],
    ("Lawyer", "40 on"): [0, 1],
    ("Dancer", "18 to <40"): [1, 1],
    ("Dancer", "40 on"): [0, 0],
    ("Writer", "18 to <40"): [1, 1],
    ("Writer", "40 on"): [0, 0],
}


def job() -> Cut:
    return root_cut(YEARS.single("Job"))


def age() -> NumericCut:
    cut = root_cut(YEARS.single("Age"))
    assert isinstance(cut, NumericCut)
    return cut


def table_of(model: ReleaseEstimator, like: Groups) -> Groups:
    """All groups of a table of the paper, as released; what is not released has no rows."""
    shown = shown_groups(model)
    last_age = model.release().values["Age"][-1].name
    names = {group: tuple(last_age if name == "40 on" else name for name in group) for group in like}
    assert set(shown) <= set(names.values())
    return {group: shown.get(names[group], [0, 0]) for group in like}


def test_the_tables_have_the_counts_of_the_paper() -> None:
    assert [sum(counts) for counts in TABLE_1C.values()] == [2, 0, 1, 1, 2, 0, 2, 0]
    assert [sum(counts) for counts in TABLE_1D.values()] == [3, 1, 4, 0]


def test_diffgen_goes_through_the_steps_of_figure_2() -> None:
    """Age would be cut at 40, one of 46 points; Any_Job of the two values is specialised, then [18, 65) of the three."""
    script = Scripted((46, 40 - 18 - 1), (2, 0), (3, 2))
    with choosing(script):
        model = fitted(dm.DiffGen(HUGE, 2), TABLE_1A, YEARS)
    assert script.left == []
    assert table_of(model, TABLE_1D) == TABLE_1D
    assert [value.name for value in model.release().values["Age"]] == ["18 to <40", "40 to 64"]
    expected = ["Professional"] * 4 + ["Artist"] * 4
    assert model.transform(TABLE_1A)["Job"] == expected
    assert model.transform(TABLE_1A)["Age"] == ["40 to 64" if years >= 40 else "18 to <40" for years in TABLE_1A["Age"]]


def test_before_age_is_specialised_the_table_is_table_1b() -> None:
    script = Scripted((46, 40 - 18 - 1), (2, 0))
    with choosing(script):
        model = fitted(dm.DiffGen(HUGE, 1), TABLE_1A, YEARS)
    assert shown_groups(model) == {(*group, "18 to 64"): counts for group, counts in TABLE_1B.items()}


@pytest.mark.parametrize("calibration", ["generic", "monotone"])
@pytest.mark.parametrize("points", ["first", "joint"])
@pytest.mark.parametrize("score", SCORES)
def test_diffgen_finds_table_1d_by_itself_where_age_has_one_cut(score: str, points: str, calibration: str) -> None:
    """Age gains and the job does not (by Max: 5 to 4), so Age is first; then nothing is left but the job."""
    model = fitted(dm.DiffGen(HUGE, 2, score, calibration, points), TABLE_1A, TWO_AGES)
    assert table_of(model, TABLE_1D) == TABLE_1D


@pytest.mark.parametrize("score", SCORES)
def test_diffgen_finds_table_1b_by_itself_where_age_cannot_be_cut(score: str) -> None:
    model = fitted(dm.DiffGen(HUGE, 1, score), TABLE_1A, ONE_AGE)
    assert shown_groups(model) == {(*group, "18 to 64"): counts for group, counts in TABLE_1B.items()}


def test_diffgen_that_goes_all_the_way_is_the_contingency_table_1c() -> None:
    model = fitted(dm.DiffGen(HUGE, 4), TABLE_1A, TWO_AGES)
    assert table_of(model, TABLE_1C) == TABLE_1C
    further = fitted(dm.DiffGen(HUGE, 40), TABLE_1A, TWO_AGES)  # nothing is left to specialise
    assert shown_groups(further) == shown_groups(model)


def test_the_contingency_table_is_table_1c() -> None:
    model = fitted(ContingencyTable(HUGE, bins=2), TABLE_1A, TWO_AGES)
    assert table_of(model, TABLE_1C) == TABLE_1C
    every_group = {value.name for value in model.release().values["Job"]}
    assert every_group == {"Engineer", "Lawyer", "Dancer", "Writer"}


def counted(cuts: Sequence[Cut]) -> dict[tuple[str, ...], list[int]]:
    with opened(TABLE_1A, YEARS, HUGE) as private:
        groups, counts, _ = count_groups(private, cuts, Epsilon.parse(HUGE), 1)
    names = [[value.name for value in cut.values()] for cut in cuts]
    return {
        tuple(known[place] for known, place in zip(names, group, strict=True)): row
        for group, row in zip(groups.tolist(), counts.tolist(), strict=True)
    }


def test_cuts_pushed_down_by_hand_count_the_same_tables() -> None:
    def without_empty(table: Groups) -> Groups:
        long = {group[:1] + tuple(name.replace("40 on", "40 to 64") for name in group[1:]): table[group] for group in table}
        return {group: counts for group, counts in long.items() if sum(counts)}

    at_40 = age().split_at(0, 40 - 18)
    professional_artist = job().specialised(0)
    assert counted([job(), age()]) == {("Any_Job", "18 to 64"): [4, 4]}
    assert counted([professional_artist]) == TABLE_1B
    assert counted([professional_artist, at_40]) == without_empty(TABLE_1D)
    jobs = YEARS.single("Job")
    assert isinstance(jobs, Nominal)
    assert counted([finest_cut(jobs), at_40]) == without_empty(TABLE_1C)
    assert counted([professional_artist.specialised(0).specialised(2), at_40]) == without_empty(TABLE_1C)
    # The other way round, and an attribute that is left at its root between two that are not.
    assert counted([at_40, professional_artist]) == {
        (years, name): counts for (name, years), counts in without_empty(TABLE_1D).items()
    }
    assert counted([age(), professional_artist]) == {("18 to 64", *group): counts for group, counts in TABLE_1B.items()}


def test_the_solution_cut_of_figure_1() -> None:
    cut = job()
    assert [value.name for value in cut.values()] == ["Any_Job"]
    assert cut.key() is None
    assert cut.candidates() == [0]
    below = cut.specialised(0)
    assert isinstance(below, NominalCut)
    assert [(value.name, value.codes) for value in below.values()] == [("Professional", (0, 1)), ("Artist", (2, 3))]
    assert below.candidates() == [0, 1]
    assert [value.name for value in below.specialised(0).values()] == ["Engineer", "Lawyer", "Artist"]
    assert below.specialised(0).candidates() == [2]
    years = YEARS.single("Age")
    assert isinstance(years, Numeric)
    assert [value.name for value in evenly_cut(years, 2).values()] == ["18 to <41", "41 to 64"]
