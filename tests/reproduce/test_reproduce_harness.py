"""The loop that runs experiments: it resumes, pairs, restricts, and works in several processes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.experiments import drawn, kills_its_process, lines_of, refuses_late_repetitions, small

from dpmine.base.errors import DataError, RequestError
from dpmine.reproduce import experiments
from dpmine.reproduce.experiments import Scene, grid, stable_seed
from dpmine.reproduce.harness import chosen_points, run
from dpmine.reproduce.records import Record, RecordFile
from dpmine.reproduce.significance import paired_differences

CASES = 2 * 2 * 2 * 5  # algorithms, sizes, budgets, repetitions


def test_every_case_is_run_once_and_stored_at_once(tmp_path: Path) -> None:
    outcome = run(small(), tmp_path, workers=1)
    assert outcome.fresh == len(outcome.records) == len(lines_of(tmp_path)) == CASES
    assert set(json.loads(lines_of(tmp_path)[0])) == {
        *("fingerprint", "point", "algorithm", "repetition", "seed", "measures")
    }


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stopped"):
        run(small(measure=refuses_late_repetitions), tmp_path, workers=1)
    before = lines_of(tmp_path)
    assert len(before) == CASES * 2 // 5
    outcome = run(small(), tmp_path, workers=1)
    assert outcome.fresh == CASES - len(before)
    assert lines_of(tmp_path)[: len(before)] == before
    whole = run(small(), tmp_path / "anew", workers=1)
    assert [record.measures for record in outcome.records] == [record.measures for record in whole.records]


def test_a_killed_process_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from support.experiments import kills_its_process, small; "
        "from dpmine.reproduce.harness import run; "
        f"run(small(measure=kills_its_process), Path({str(tmp_path)!r}), workers=1)"
    )
    killed = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[1], check=False)
    assert killed.returncode == 9
    assert len(lines_of(tmp_path)) == CASES * 2 // 5
    assert run(small(), tmp_path, workers=1).fresh == CASES * 3 // 5
    assert kills_its_process.__module__ == small.__module__


def test_a_torn_last_line_is_cut_off_and_run_again(tmp_path: Path) -> None:
    run(small(), tmp_path, workers=1)
    file = tmp_path / "small.jsonl"
    stored = file.read_bytes()
    file.write_bytes(stored[:-30])
    outcome = run(small(), tmp_path, workers=1)
    assert outcome.fresh == 1
    assert file.read_bytes() == stored


def test_a_broken_line_in_the_middle_is_refused(tmp_path: Path) -> None:
    run(small(), tmp_path, workers=1)
    lines = lines_of(tmp_path)
    for broken in ("{", "[]", "{}"):
        (tmp_path / "small.jsonl").write_text("\n".join([lines[0], broken, *lines[1:]]) + "\n", encoding="utf-8")
        if broken == "{}":  # a line without a fingerprint is of other settings
            assert run(small(), tmp_path, workers=1).fresh == CASES
        else:
            with pytest.raises(DataError, match="no records"):
                run(small(), tmp_path, workers=1)


def test_other_settings_start_anew_and_the_old_records_are_set_aside(tmp_path: Path) -> None:
    first = small()
    run(first, tmp_path, workers=1)
    before = lines_of(tmp_path)
    assert run(small(settings={"colour": "blue"}), tmp_path, workers=1).fresh == CASES
    aside = tmp_path / f"small.{first.fingerprint()}.jsonl"
    assert aside.read_text(encoding="utf-8").splitlines() == before


def test_the_fingerprint_follows_settings_and_version_but_not_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = small().fingerprint()
    assert small(points=grid(size=(10,), epsilon=(0.5,)), repetitions=900).fingerprint() == ours
    assert small(settings={"colour": "blue"}).fingerprint() != ours
    assert replace(small(), name="other").fingerprint() != ours
    monkeypatch.setattr(experiments, "version", lambda name: "99")
    assert small().fingerprint() != ours


def test_a_quick_run_is_a_part_of_the_full_run(tmp_path: Path) -> None:
    quick = run(small(), tmp_path, quick=True, workers=1)
    assert quick.fresh == 2 * 2
    full = run(small(), tmp_path, workers=1)
    assert full.fresh == CASES - quick.fresh
    assert all(record in full.records for record in quick.records)
    assert run(small(), tmp_path, quick=True, workers=1) == replace(quick, fresh=0)


def test_more_runs_add_to_those_there_are(tmp_path: Path) -> None:
    run(small(), tmp_path, repetitions=3, workers=1)
    assert run(small(), tmp_path, repetitions=4, workers=1).fresh == CASES // 5


# -- pairing -----------------------------------------------------------------------------------------------------------


def test_all_algorithms_of_a_repetition_see_the_same_data(tmp_path: Path) -> None:
    records = run(small(), tmp_path, workers=1).records
    seeds: dict[object, set[int]] = {}
    for record in records:
        seeds.setdefault((record.point["size"], record.repetition), set()).add(record.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set.union(*seeds.values())) == 2 * 5  # other sizes and repetitions see other data


def test_paired_differences_cancel_the_luck_of_the_sample(tmp_path: Path) -> None:
    records = run(small(), tmp_path, workers=1).records
    point = {"size": 10, "epsilon": 0.5}
    plain, better = (
        [record for record in records if record.algorithm == name and record.point == point] for name in ("plain", "better")
    )
    assert len({record.measures["score"] for record in plain}) > 1
    assert paired_differences(better, plain, "score") == [2.0] * 5


def test_wrong_pairing_of_seeds_is_refused() -> None:
    """The mistake that the harness must not make: a seed that depends on the algorithm."""
    wrong = [
        [Record({}, name, number, stable_seed("small", name, number), {"score": 1.0}) for number in range(3)]
        for name in ("plain", "better")
    ]
    with pytest.raises(DataError, match="same data"):
        paired_differences(*wrong, "score")
    with pytest.raises(DataError, match="same repetitions"):
        paired_differences(wrong[0], wrong[0][:2], "score")


def test_seeds_are_stable_and_follow_every_part() -> None:
    assert stable_seed("experiment", {"b": 1, "a": 2}, 0) == stable_seed("experiment", {"a": 2, "b": 1}, 0)
    assert stable_seed("experiment", {"samples": 1000}, 0) == 1906944336015155544  # the same on every machine
    assert len({stable_seed("a", 1), stable_seed("a", 2), stable_seed("b", 1), stable_seed("a1")}) == 4
    scene = small().scene({"size": 10, "epsilon": 0.5}, 3)
    assert scene == Scene({"size": 10}, 3, stable_seed("small", {"size": 10}, 3))


def test_indifferent_algorithms_run_once_for_all_budgets(tmp_path: Path) -> None:
    outcome = run(small(indifferent=("plain",)), tmp_path, workers=1)
    plain = [record for record in outcome.records if record.algorithm == "plain"]
    assert len(plain) == 2 * 5
    assert all("epsilon" not in record.point for record in plain)


def test_scenes_of_one_kind_run_one_after_another(tmp_path: Path) -> None:
    seen: list[int] = []

    def noted(scene: Scene) -> float:
        seen.append(scene.repetition % 2)
        return drawn(scene)

    run(small(generate=noted, together=lambda scene: scene.repetition % 2), tmp_path, workers=1)
    assert seen == [0] * 6 + [1] * 4


# -- parts of the grid, processes ----------------------------------------------------------------------------------------


def test_only_restricts_the_grid_and_says_what_there_is() -> None:
    assert chosen_points(small(), quick=True, only={"size": [20], "epsilon": [1]}) == ({"size": 20, "epsilon": 1.0},)
    with pytest.raises(RequestError, match=r"no parameter 'colour'\. It has: size, epsilon"):
        chosen_points(small(), quick=False, only={"colour": [1]})
    with pytest.raises(RequestError, match=r"size = 11\. It is run with: 10, 20"):
        chosen_points(small(), quick=False, only={"size": [11]})


def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    one = run(small(), tmp_path / "one", workers=1)
    two = run(small(), tmp_path / "two", workers=2)
    assert two.records == one.records
    assert sorted(lines_of(tmp_path / "two")) == sorted(lines_of(tmp_path / "one"))


def test_impossible_numbers_are_refused(tmp_path: Path) -> None:
    for change in ({"workers": 0}, {"repetitions": 0}):
        with pytest.raises(RequestError, match="at least 1"):
            run(small(), tmp_path, **change)  # type: ignore[arg-type]


def test_records_without_a_file_are_none(tmp_path: Path) -> None:
    assert RecordFile(tmp_path / "none.jsonl", "x").read() == []
