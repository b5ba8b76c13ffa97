"""Statements: what was granted and spent, and what that guarantees, in plain sentences."""

from dataclasses import dataclass

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire_values import value
from dpmine.codes.answers import Reply
from dpmine.language.queries import Query


@dataclass(frozen=True)
class PaidAnswer:
    """What an analyst asked and was answered, as it was asked first, and when. To read it again costs nothing."""

    query: Query
    reply: Reply
    at: str


@value("spending")
class Spending:
    """One charged request."""

    analyst: str
    what: str
    cost: Epsilon
    at: str
    answered: bool


@value("allotment")
class Allotment:
    analyst: str
    allotment: Epsilon
    spent: Epsilon
    revoked: bool

    @property
    def remaining(self) -> Epsilon:
        return Epsilon(0 if self.revoked else max(self.allotment.units - self.spent.units, 0))


@value("statement")
class Statement:
    """What a data set's ledger says, to one analyst or (all allotments, the data set's own spending) to the owner."""

    dataset: str
    version: str
    currency: str
    neighbours: str
    unit: str
    renewal: str
    schema_drafted: bool
    cap: Epsilon
    dataset_spent: Epsilon | None
    allotments: tuple[Allotment, ...]
    spendings: tuple[Spending, ...]

    @property
    def guarantee(self) -> str:
        """The promise in one plain sentence, and what it does not cover."""
        spent = self.dataset_spent if self.dataset_spent is not None else self.allotments[0].spent
        whose = "All answers together are" if self.dataset_spent is not None else "The answers given to this analyst are"
        text = (
            f"{whose} {spent}-differentially private (pure epsilon, delta 0) for adding or removing one {self.unit}: no one "
            f"{self.unit} makes any outcome more than exp({spent}) times as likely. Changing a {self.unit}'s values counts "
            f"as removing one {self.unit} and adding another, which costs twice."
        )
        if self.dataset_spent is None:
            text += (
                " What else an analyst may notice, whether the data set's cap still has room, follows from what others were "
                "answered; all of it together is covered by the cap."
            )
        if self.unit != "row":
            text += f" Neighbours: {self.neighbours}."
        if self.schema_drafted:
            text += " A schema in use was drafted by looking at the data, outside this budget, which does not count that."
        return text

    def __str__(self) -> str:
        lines = [f"Data set {self.dataset!r}, version {self.version!r}. Cap over all analysts: epsilon {self.cap}."]
        if self.renewal:
            lines.append(f"The cap grows by {self.renewal}. What was spent does not fade: it adds up for ever.")
        if self.dataset_spent is not None:
            lines.append(f"Spent by all together: epsilon {self.dataset_spent}.")
        for one in self.allotments:
            state = ", revoked" if one.revoked else ""
            lines.append(f"{one.analyst}: granted {one.allotment}, spent {one.spent}, remaining {one.remaining}{state}.")
        lines += [
            f"  {spending.at[:19]}  {spending.analyst}  charged {spending.cost}  {spending.what}"
            + ("" if spending.answered else "  (charged, never answered)")
            for spending in self.spendings
        ]
        lines.append(self.guarantee)
        return "\n".join(lines)
