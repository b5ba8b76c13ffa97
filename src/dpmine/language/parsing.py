"""The text form of predicates and keys, for the command line.

    predicate :=  term { "or" term }          term := factor { "and" factor }
    factor    :=  "not" factor | "(" predicate ")" | "true" | "false" | name comparison
    comparison :=  ("==" | "=" | "!=" | "<" | "<=" | ">" | ">=") word | "in" list | "contains" (list | word)
                  | "is" ["not"] "missing"
    list      :=  "[" word { "," word } "]"
    key       :=  name [ ":" unit | ":" cut { ":" cut } ]     for example  ward  or  admitted:month  or  age:18:40:65
    unit      :=  "year" | "month" | "week" | "day" | "weekday" | "hour"

Words are bare (letters, digits, _ . + -) or stand in quotes; a backslash escapes a quote. A cut with a ":" in it stands in
quotes too: arrived:"06:00":"12:00".
"""

import re

from dpmine.base.errors import ExpressionError
from dpmine.language.keys import CALENDAR_UNITS, AttributeKey, Bins, ByCalendar, Key
from dpmine.language.predicates import WORDS, And, Compare, Contains, IsIn, IsMissing, Not, Or, Predicate

LONGEST = 100_000
DEEPEST = 50

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
          |(?P<op>==|!=|<=|>=|=|<|>)
          |(?P<mark>[()\[\],])
          |(?P<word>[\w.+-]+))""",
    re.VERBOSE | re.DOTALL,
)

_CUT = re.compile(r""":(\s*"[^"]*"\s*(?=:|$)|\s*'[^']*'\s*(?=:|$)|[^:]*)""")


def parse_predicate(text: str) -> Predicate:
    """Read a predicate such as `age >= 40 and ward in [north, south]`."""
    reader = _Reader(text)
    predicate = reader.predicate(0)
    reader.expect_end()
    return predicate


def parse_key(text: str) -> Key:
    """Read a key: an attribute name, name:unit for a date by the calendar, or name:cut:cut for bins."""
    name, colon, rest = text.partition(":")
    name = name.strip()
    if not name:
        raise ExpressionError(f"A column name was expected. Got {text!r} instead.")
    if not colon:
        return AttributeKey(name)
    if rest.strip() in CALENDAR_UNITS:
        return ByCalendar(name, rest.strip())
    cuts = [match.group(1).strip() for match in _CUT.finditer(f":{rest}")]
    return Bins(name, tuple(cut[1:-1] if cut[:1] in ('"', "'") and len(cut) > 1 else cut for cut in cuts))


class _Reader:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(f"The predicate is longer than {LONGEST} characters.")
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        end = len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise self.error("cannot be read", position)
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            position = match.end()
        self.next = 0

    def error(self, what: str, position: int | None = None) -> ExpressionError:
        if position is None:
            position = self.tokens[self.next][2] if self.next < len(self.tokens) else len(self.text)
        near = self.text[position : position + 20] or "the end"
        return ExpressionError(f"The predicate {what} at {near!r}. Example: age >= 40 and ward in [north, south].")

    def peek(self, kind: str, *texts: str) -> bool:
        if self.next >= len(self.tokens):
            return False
        found, text, _ = self.tokens[self.next]
        return found == kind and (not texts or text.lower() in texts)

    def take(self, kind: str, *texts: str) -> str | None:
        if not self.peek(kind, *texts):
            return None
        self.next += 1
        return self.tokens[self.next - 1][1]

    def expect_end(self) -> None:
        if self.next != len(self.tokens):
            raise self.error("has something left over")

    def predicate(self, depth: int) -> Predicate:
        if depth > DEEPEST:
            raise ExpressionError(f"The predicate is nested deeper than {DEEPEST} levels.")
        parts = [self.term(depth)]
        while self.take("word", "or"):
            parts.append(self.term(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def term(self, depth: int) -> Predicate:
        parts = [self.factor(depth)]
        while self.take("word", "and"):
            parts.append(self.factor(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def factor(self, depth: int) -> Predicate:
        if depth > DEEPEST:
            raise ExpressionError(f"The predicate is nested deeper than {DEEPEST} levels.")
        if self.take("word", "not"):
            return Not(self.factor(depth + 1))
        if self.take("word", "true"):
            return And(())
        if self.take("word", "false"):
            return Or(())
        if self.take("mark", "("):
            inner = self.predicate(depth + 1)
            if not self.take("mark", ")"):
                raise self.error("misses a ')'")
            return inner
        return self.comparison()

    def comparison(self) -> Predicate:
        if self.peek("word", *WORDS):
            raise self.error("needs a column name (in quotes if it is one of our words)")
        name = self.word("a column name")
        if self.take("word", "in"):
            return IsIn(name, self.words())
        if self.take("word", "contains"):
            return Contains(name, self.words() if self.peek("mark", "[") else (self.word("an item"),))
        if self.take("word", "is"):
            negated = self.take("word", "not")
            if not self.take("word", "missing"):
                raise self.error("needs 'is missing' or 'is not missing'")
            return Not(IsMissing(name)) if negated else IsMissing(name)
        operator = self.take("op")
        if operator is None:
            raise self.error("needs a comparison, 'in', 'is missing' or 'contains'")
        return Compare(name, "==" if operator == "=" else operator, self.word("a value"))

    def words(self) -> tuple[str, ...]:
        if not self.take("mark", "["):
            raise self.error("needs a list such as [a, b]")
        if self.take("mark", "]"):
            return ()
        words = [self.word("a value")]
        while self.take("mark", ","):
            words.append(self.word("a value"))
        if not self.take("mark", "]"):
            raise self.error("misses a ']'")
        return tuple(words)

    def word(self, what: str) -> str:
        text = self.take("quoted")
        if text is not None:
            return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
        bare = self.take("word")
        if bare is not None:
            return bare
        raise self.error(f"needs {what}")
