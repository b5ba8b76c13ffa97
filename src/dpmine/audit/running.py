"""The audit of the whole package: rounds of all pairs and mutants in worker processes, and what they say together.

All tests of one audit share its false-alarm rate evenly (Bonferroni): each pair has a bound on epsilon, and where the exact
law is known two tests of fit. A mutant is judged by the same tests at the same rate, and must fail one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmine.audit.bounds import Bound, lower_bound, merged
from dpmine.audit.catalogue import all_pairs
from dpmine.audit.fit import fit_failure
from dpmine.audit.mutants import MUTANTS, Mutant
from dpmine.audit.pairs import AuditPair
from dpmine.audit.records import RoundFile, source_fingerprint
from dpmine.audit.sampling import Drawn, Task, text_of, work
from dpmine.base.errors import RequestError
from dpmine.base.progress import Progress
from dpmine.base.workers import worked

WORKERS = 2  # more only when asked: others may need the machine
TIGHT = 0.9  # of the claim, to be measured where a pair says that it can be


@dataclass(frozen=True)
class Mode:
    """How much is run, and how often a correct package may be accused."""

    name: str
    false_alarms: float
    full: bool


QUICK = Mode("quick", 1e-6, full=False)
FULL = Mode("full", 1e-2, full=True)


@dataclass(frozen=True)
class Finding:
    """What the rounds of one pair say."""

    pair: AuditPair
    mutant: Mutant | None
    bound: Bound | None
    charged: float
    fit: float | None
    """The largest probability of so bad a fit under the exact law; None where the law is not known."""
    refused: str | None
    runs: int
    seconds: float
    failure: float
    """The false-alarm rate of each test."""

    @property
    def measured(self) -> float:
        return 0.0 if self.bound is None else self.bound.epsilon

    @property
    def violations(self) -> list[str]:
        """Everything that speaks against the claim, in words."""
        if self.refused is not None:
            return [self.refused]
        found = []
        if self.measured > self.pair.claimed:
            found.append(f"epsilon is at least {self.measured:.3f}, claimed {self.pair.claimed:g}")
        if self.charged < self.pair.claimed and self.measured > self.charged:
            found.append(f"epsilon is at least {self.measured:.3f}, charged {self.charged:g}")
        if self.fit is not None and self.fit < self.failure:
            found.append(f"outcomes do not follow the exact law (p below {max(self.fit, 1e-300):.1g})")
        return found

    @property
    def passed(self) -> bool:
        return not self.violations

    @property
    def too_weak(self) -> bool:
        """Whether a pair that can measure nearly all of the claim did not; only many runs can."""
        return self.pair.tight and self.measured < TIGHT * self.pair.claimed

    def form(self) -> dict[str, Any]:
        return {
            "pair": self.pair.name,
            "mutant": None if self.mutant is None else self.mutant.name,
            "claimed": self.pair.claimed,
            "charged": self.charged,
            "measured": round(self.measured, 6),
            "fit": self.fit,
            "runs": self.runs,
            "seconds": round(self.seconds, 2),
            "passed": self.passed,
            "violations": self.violations,
            "covers": list(self.pair.covers),
        }


@dataclass(frozen=True)
class Audit:
    """The findings of one audit."""

    mode: Mode
    findings: tuple[Finding, ...]
    planted: tuple[Finding, ...]
    skipped: tuple[tuple[AuditPair, str], ...]

    @property
    def survivors(self) -> list[str]:
        """Mutants that some pair which must find them did not find."""
        return sorted({found.mutant.name for found in self.planted if found.mutant is not None and found.passed})

    @property
    def too_weak(self) -> list[str]:
        """Pairs of a full audit that measured less than they can."""
        return [found.pair.name for found in self.findings if found.too_weak] if self.mode.full else []

    @property
    def passed(self) -> bool:
        return all(found.passed for found in self.findings) and not self.survivors

    def form(self) -> dict[str, Any]:
        return {
            "mode": self.mode.name,
            "false_alarms": self.mode.false_alarms,
            "passed": self.passed,
            "pairs": [found.form() for found in self.findings],
            "mutants": [found.form() for found in self.planted],
            "survivors": self.survivors,
            "too_weak": self.too_weak,
            "skipped": [{"pair": pair.name, "reason": reason} for pair, reason in self.skipped],
        }


# -- what to run -------------------------------------------------------------------------------------------------------


def number_of_tests(pairs: Sequence[AuditPair]) -> int:
    return sum(pair.tests for pair in pairs)


def chosen(only: Sequence[str]) -> tuple[list[AuditPair], list[Mutant]]:
    """All pairs and mutants, or those named; a part of a name stands for all names that hold it."""
    pairs, mutants = list(all_pairs().values()), list(MUTANTS)
    if not only:
        return pairs, mutants
    names = {pair.name for pair in pairs} | {mutant.name for mutant in mutants}
    exact = set(only) & names
    for name in only:
        if name not in exact and not any(name in known for known in names):
            raise RequestError(f"There is no audit pair or mutant {name!r}. See them with: dpmine audit --list")

    def wanted(name: str) -> bool:
        return name in exact or any(part in name for part in only if part not in exact)

    return [pair for pair in pairs if wanted(pair.name)], [mutant for mutant in mutants if wanted(mutant.name)]


def tasks_of(mode: Mode, pairs: Sequence[AuditPair], mutants: Sequence[Mutant]) -> list[Task]:
    """Mutants are run once in either mode; rounds of all pairs take turns, so a stopped audit knows a little of each."""
    known = all_pairs()
    planted = [
        Task(name, round(known[name].runs * mutant.effort), 0, mutant.name)
        for mutant in mutants
        for name in mutant.caught_by
    ]
    rounds = max((pair.rounds for pair in pairs), default=0) if mode.full else 1
    real = [Task(pair.name, pair.runs, turn) for turn in range(rounds) for pair in pairs if turn < pair.rounds]
    return planted + real


def run_audit(
    mode: Mode,
    *,
    only: Sequence[str] = (),
    folder: Path | None = None,
    workers: int = WORKERS,
    progress: bool | None = None,
) -> Audit:
    """Run what is still missing and judge all of it. With a folder, every finished round of a full audit is kept there."""
    pairs, mutants = chosen(only)
    skipped = tuple((pair, f"needs {pair.needs}, which is not installed") for pair in pairs if not pair.available)
    pairs = [pair for pair in pairs if pair.available]
    tasks = tasks_of(mode, pairs, mutants)
    file = RoundFile(folder / "audit.jsonl", source_fingerprint()) if mode.full and folder is not None else None
    known = {drawn.task.key: drawn for drawn in (file.read() if file else [])}
    missing = [task for task in tasks if task.key not in known]
    with worked(work, missing, workers, "An audit") as finished:
        for drawn in Progress("Audit", shown=progress).steps(finished, "rounds", total=len(missing)):
            known[drawn.task.key] = drawn
            if file:
                file.append(drawn)
    failure = mode.false_alarms / number_of_tests(list(all_pairs().values()))
    by_subject: dict[tuple[str, str | None], list[Drawn]] = {}
    for task in tasks:
        by_subject.setdefault((task.pair, task.mutant), []).append(known[task.key])
    named = {mutant.name: mutant for mutant in mutants}
    real = tuple(judge(pair, None, by_subject[pair.name, None], failure) for pair in pairs)
    planted = tuple(
        judge(all_pairs()[name], named[mutant], rounds, failure) for (name, mutant), rounds in by_subject.items() if mutant
    )
    return Audit(mode, real, planted, skipped)


def judge(pair: AuditPair, mutant: Mutant | None, rounds: Sequence[Drawn], failure: float) -> Finding:
    """All rounds of one pair together."""
    refused = next((drawn.refused for drawn in rounds if drawn.refused is not None), None)
    charged = max(drawn.charged for drawn in rounds)
    seconds = sum(drawn.seconds for drawn in rounds)
    if refused is not None:
        return Finding(pair, mutant, None, charged, None, refused, 0, seconds, failure)
    chosen_on = tuple(merged([drawn.chosen_on[side] for drawn in rounds]) for side in (0, 1))
    judged_on = tuple(merged([drawn.judged_on[side] for drawn in rounds]) for side in (0, 1))
    bound = lower_bound((chosen_on[0], chosen_on[1]), (judged_on[0], judged_on[1]), failure=failure)
    fit = None
    if pair.laws is not None:
        laws = [{text_of(outcome): chance for outcome, chance in law.items()} for law in pair.laws]
        fit = min(
            fit_failure(merged(list(both)), law)
            for both, law in zip(zip(chosen_on, judged_on, strict=True), laws, strict=True)
        )
    return Finding(pair, mutant, bound, charged, fit, None, min(bound.runs), seconds, failure)
