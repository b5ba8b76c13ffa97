"""What is publicly known about Adult (UCI, Kohavi and Becker 1996): categories as documented, ranges as published.

The numeric ranges are those that Fung, Wang and Yu (TKDE 19(5), 2007) published with their taxonomy trees. The code reads
no row for them; a test compares them with the data. The taxonomy trees are read from the data folder when wanted.
"""

import json
from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal
from typing import Any

from dpmine.base.errors import DataError, RequestError, SchemaError
from dpmine.datasets.folder import data_file
from dpmine.facts.kinds.kind import Attribute
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema

UNKNOWN = "?"
CLASS = "income"
TRAINING_ROWS = 32_561  # the first rows; the test rows follow
TAXONOMY_FILE = "adult_taxonomies.json"

Range = tuple[int, int, int]  # low, high, and the step of the default grid

RANGES: dict[str, Range] = {
    "age": (15, 95, 1),
    "fnlwgt": (0, 1_500_000, 10_000),
    "education_num": (1, 20, 1),
    "capital_gain": (0, 100_000, 500),
    "capital_loss": (0, 5_000, 50),
    "hours_per_week": (1, 100, 1),
}


def listed(text: str) -> tuple[str, ...]:
    """The categories of a text that separates them by '|'."""
    return tuple(text.split("|"))


CATEGORIES: dict[str, tuple[str, ...]] = {
    "workclass": listed("Federal-gov|Local-gov|Never-worked|Private|Self-emp-inc|Self-emp-not-inc|State-gov|Without-pay"),
    "education": listed(
        "10th|11th|12th|1st-4th|5th-6th|7th-8th|9th|Assoc-acdm|Assoc-voc|Bachelors|Doctorate|HS-grad|Masters|Preschool|"
        "Prof-school|Some-college"
    ),
    "marital_status": listed(
        "Divorced|Married-AF-spouse|Married-civ-spouse|Married-spouse-absent|Never-married|Separated|Widowed"
    ),
    "occupation": listed(
        "Adm-clerical|Armed-Forces|Craft-repair|Exec-managerial|Farming-fishing|Handlers-cleaners|Machine-op-inspct|"
        "Other-service|Priv-house-serv|Prof-specialty|Protective-serv|Sales|Tech-support|Transport-moving"
    ),
    "relationship": listed("Husband|Not-in-family|Other-relative|Own-child|Unmarried|Wife"),
    "race": listed("Amer-Indian-Eskimo|Asian-Pac-Islander|Black|Other|White"),
    "sex": ("Female", "Male"),
    "native_country": listed(
        "Cambodia|Canada|China|Columbia|Cuba|Dominican-Republic|Ecuador|El-Salvador|England|France|Germany|Greece|"
        "Guatemala|Haiti|Holand-Netherlands|Honduras|Hong|Hungary|India|Iran|Ireland|Italy|Jamaica|Japan|Laos|Mexico|"
        "Nicaragua|Outlying-US(Guam-USVI-etc)|Peru|Philippines|Poland|Portugal|Puerto-Rico|Scotland|South|Taiwan|"
        "Thailand|Trinadad&Tobago|United-States|Vietnam|Yugoslavia"
    ),
    "income": ("<=50K", ">50K"),
}
WITH_UNKNOWN = ("workclass", "occupation", "native_country")  # documented: unknown values are written as '?'
COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship"),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", CLASS),
)


def adult_schema(
    *,
    bins: int | None = None,
    steps: Mapping[str, int | str | Decimal] | None = None,
    taxonomies: bool = False,
    complete: bool = False,
    rows_at_most: int = 50_000,
) -> Schema:
    """The 14 attributes of Adult and the class.

    bins        numeric attributes in this many equal bins; without, on a default grid
    steps       the step of single numeric attributes, before bins and default
    taxonomies  with the published trees, from adult_taxonomies.json of the data folder; '?' hangs below the root
    complete    for the rows without unknown values: no category '?'
    """
    unknown_names = sorted(set(steps or {}) - set(RANGES))
    if unknown_names:
        raise RequestError(f"Adult has no numeric attribute {unknown_names[0]!r}. It has: {', '.join(RANGES)}.")
    trees = _trees() if taxonomies else {}
    attributes: list[Attribute] = []
    for name in COLUMNS:
        if name in RANGES:
            attributes.append(numeric(name, RANGES[name], bins=bins, step=(steps or {}).get(name)))
        else:
            with_unknown = name in WITH_UNKNOWN and not complete
            attributes.append(nominal(name, CATEGORIES[name], with_unknown=with_unknown, tree=trees.get(name)))
    return Schema("adult", tuple(attributes), rows_at_most, class_attribute=CLASS)


def numeric(name: str, known: Range, *, bins: int | None = None, step: int | str | Decimal | None = None) -> Numeric:
    """A numeric attribute on its published range: by a step, else in equal bins, else on the default grid."""
    low, high, default = map(Decimal, known)
    if step is None and bins is not None:
        if bins < 2:
            raise RequestError(f"A numeric attribute needs at least 2 bins. Got {bins} instead.")
        width = ((high - low) / bins).quantize(Decimal("1e-9"), rounding=ROUND_DOWN)
        edges = tuple(low + width * place for place in range(1, bins))
        return Numeric(name, low, high, None, low, min(Decimal(1), Decimal(1).scaleb(width.adjusted() - 1)), edges)
    return Numeric(name, low, high, default if step is None else Decimal(step), low)


def nominal(name: str, categories: tuple[str, ...], *, with_unknown: bool, tree: TaxonomyNode | None = None) -> Nominal:
    """A nominal attribute; whatever is not listed counts as unknown, or as the first category where none is unknown."""
    if not with_unknown:
        return Nominal(name, categories, categories[0], tree, missing=categories[0])
    if tree is not None:
        tree = TaxonomyNode(tree.name, (*tree.children, TaxonomyNode(UNKNOWN)))
    return Nominal(name, (UNKNOWN, *categories), UNKNOWN, tree, missing=UNKNOWN)


def _trees() -> dict[str, TaxonomyNode]:
    path = data_file(TAXONOMY_FILE)
    try:
        form: Any = json.loads(path.read_text(encoding="utf-8"))
        return {name: TaxonomyNode.parse(*only) for name, tree in form.items() for only in tree.items()}
    except (ValueError, AttributeError, SchemaError):
        raise DataError(f"{TAXONOMY_FILE!r} must hold one tree of nested objects for each attribute.") from None
