"""What is publicly known about Census-Income (KDD) (UCI, Lane and Kohavi 2000): categories as its documentation lists them.

The documentation calls the numeric attributes continuous and gives no ranges. Those here are round figures of our own,
after the survey's form: ages to 90, wages in cents of four digits, gains and dividends in dollars of five; losses keep the
range published for the same question in Adult. The documentation lists '?' nowhere but counts it among the distinct
values. Its class '- 50000' is written '-50000' here, as in the file.
"""

from dpmine.datasets.adult_facts import Range, listed, nominal, numeric
from dpmine.facts.schema import Schema

CLASS = "income"
WEIGHT = "instance_weight"  # how many people a row stands for; its documentation says to keep it out of classifiers
SPLIT = "split"

RANGES: dict[str, Range] = {
    "age": (0, 90, 1),
    "wage_per_hour": (0, 10_000, 50),
    "capital_gains": (0, 100_000, 500),
    "capital_losses": (0, 5_000, 50),
    "dividends": (0, 100_000, 500),
    "num_persons_worked_for_employer": (0, 6, 1),
    "weeks_worked": (0, 52, 1),
}
_CODES = tuple(str(code) for code in range(52))
_ANSWERS = ("No", "Not in universe", "Yes")
_COUNTRIES = listed(
    "Cambodia|Canada|China|Columbia|Cuba|Dominican-Republic|Ecuador|El-Salvador|England|France|Germany|Greece|Guatemala|"
    "Haiti|Holand-Netherlands|Honduras|Hong Kong|Hungary|India|Iran|Ireland|Italy|Jamaica|Japan|Laos|Mexico|Nicaragua|"
    "Outlying-U S (Guam USVI etc)|Panama|Peru|Philippines|Poland|Portugal|Puerto-Rico|Scotland|South Korea|Taiwan|"
    "Thailand|Trinadad&Tobago|United-States|Vietnam|Yugoslavia"
)
CATEGORIES: dict[str, tuple[str, ...]] = {
    "class_of_worker": listed(
        "Federal government|Local government|Never worked|Not in universe|Private|Self-employed-incorporated|"
        "Self-employed-not incorporated|State government|Without pay"
    ),
    "industry_code": _CODES,
    "occupation_code": _CODES[:47],
    "education": listed(
        "10th grade|11th grade|12th grade no diploma|1st 2nd 3rd or 4th grade|5th or 6th grade|7th and 8th grade|"
        "9th grade|Associates degree-academic program|Associates degree-occup /vocational|Bachelors degree(BA AB BS)|"
        "Children|Doctorate degree(PhD EdD)|High school graduate|Less than 1st grade|"
        "Masters degree(MA MS MEng MEd MSW MBA)|Prof school degree (MD DDS DVM LLB JD)|Some college but no degree"
    ),
    "enrolled_in_education": ("College or university", "High school", "Not in universe"),
    "marital_status": listed(
        "Divorced|Married-A F spouse present|Married-civilian spouse present|Married-spouse absent|Never married|"
        "Separated|Widowed"
    ),
    "major_industry": listed(
        "Agriculture|Armed Forces|Business and repair services|Communications|Construction|Education|Entertainment|"
        "Finance insurance and real estate|Forestry and fisheries|Hospital services|Manufacturing-durable goods|"
        "Manufacturing-nondurable goods|Medical except hospital|Mining|Not in universe or children|"
        "Other professional services|Personal services except private HH|Private household services|"
        "Public administration|Retail trade|Social services|Transportation|Utilities and sanitary services|"
        "Wholesale trade"
    ),
    "major_occupation": listed(
        "Adm support including clerical|Armed Forces|Executive admin and managerial|Farming forestry and fishing|"
        "Handlers equip cleaners etc|Machine operators assmblrs & inspctrs|Not in universe|Other service|"
        "Precision production craft & repair|Private household services|Professional specialty|Protective services|Sales|"
        "Technicians and related support|Transportation and material moving"
    ),
    "race": listed("Amer Indian Aleut or Eskimo|Asian or Pacific Islander|Black|Other|White"),
    "hispanic_origin": listed(
        "All other|Central or South American|Chicano|Cuban|Do not know|Mexican (Mexicano)|Mexican-American|NA|"
        "Other Spanish|Puerto Rican"
    ),
    "sex": ("Female", "Male"),
    "labor_union": _ANSWERS,
    "reason_for_unemployment": listed(
        "Job leaver|Job loser - on layoff|New entrant|Not in universe|Other job loser|Re-entrant"
    ),
    "employment_status": listed(
        "Children or Armed Forces|Full-time schedules|Not in labor force|PT for econ reasons usually FT|"
        "PT for econ reasons usually PT|PT for non-econ reasons usually FT|Unemployed full-time|Unemployed part- time"
    ),
    "tax_filer_status": listed(
        "Head of household|Joint both 65+|Joint both under 65|Joint one under 65 & one 65+|Nonfiler|Single"
    ),
    "region_previous_residence": listed("Abroad|Midwest|Northeast|Not in universe|South|West"),
    "state_previous_residence": listed(
        "Abroad|Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|District of Columbia|Florida|"
        "Georgia|Idaho|Illinois|Indiana|Iowa|Kansas|Kentucky|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|"
        "Mississippi|Missouri|Montana|Nebraska|Nevada|New Hampshire|New Jersey|New Mexico|New York|North Carolina|"
        "North Dakota|Not in universe|Ohio|Oklahoma|Oregon|Pennsylvania|South Carolina|South Dakota|Tennessee|Texas|Utah|"
        "Vermont|Virginia|West Virginia|Wisconsin|Wyoming"
    ),
    "household_family_stat": listed(
        "Child 18+ ever marr Not in a subfamily|Child 18+ ever marr RP of subfamily|"
        "Child 18+ never marr Not in a subfamily|Child 18+ never marr RP of subfamily|Child 18+ spouse of subfamily RP|"
        "Child <18 ever marr RP of subfamily|Child <18 ever marr not in subfamily|Child <18 never marr RP of subfamily|"
        "Child <18 never marr not in subfamily|Child <18 spouse of subfamily RP|Child under 18 of RP of unrel subfamily|"
        "Grandchild 18+ ever marr RP of subfamily|Grandchild 18+ ever marr not in subfamily|"
        "Grandchild 18+ never marr RP of subfamily|Grandchild 18+ never marr not in subfamily|"
        "Grandchild 18+ spouse of subfamily RP|Grandchild <18 ever marr not in subfamily|"
        "Grandchild <18 never marr RP of subfamily|Grandchild <18 never marr child of subfamily RP|"
        "Grandchild <18 never marr not in subfamily|Householder|In group quarters|Nonfamily householder|"
        "Other Rel 18+ ever marr RP of subfamily|Other Rel 18+ ever marr not in subfamily|"
        "Other Rel 18+ never marr RP of subfamily|Other Rel 18+ never marr not in subfamily|"
        "Other Rel 18+ spouse of subfamily RP|Other Rel <18 ever marr RP of subfamily|"
        "Other Rel <18 ever marr not in subfamily|Other Rel <18 never marr child of subfamily RP|"
        "Other Rel <18 never marr not in subfamily|Other Rel <18 never married RP of subfamily|"
        "Other Rel <18 spouse of subfamily RP|RP of unrelated subfamily|Secondary individual|"
        "Spouse of RP of unrelated subfamily|Spouse of householder"
    ),
    "household_summary": listed(
        "Child 18 or older|Child under 18 ever married|Child under 18 never married|Group Quarters- Secondary individual|"
        "Householder|Nonrelative of householder|Other relative of householder|Spouse of householder"
    ),
    "migration_msa": listed(
        "Abroad to MSA|Abroad to nonMSA|MSA to MSA|MSA to nonMSA|NonMSA to MSA|NonMSA to nonMSA|Nonmover|"
        "Not identifiable|Not in universe"
    ),
    "migration_reg": listed(
        "Abroad|Different county same state|Different division same region|Different region|"
        "Different state same division|Nonmover|Not in universe|Same county"
    ),
    "migration_within_reg": listed(
        "Abroad|Different county same state|Different state in Midwest|Different state in Northeast|"
        "Different state in South|Different state in West|Nonmover|Not in universe|Same county"
    ),
    "live_here_1_year_ago": ("No", "Not in universe under 1 year old", "Yes"),
    "migration_sunbelt": _ANSWERS,
    "family_members_under_18": listed(
        "Both parents present|Father only present|Mother only present|Neither parent present|Not in universe"
    ),
    "country_father": _COUNTRIES,
    "country_mother": _COUNTRIES,
    "country_self": _COUNTRIES,
    "citizenship": listed(
        "Foreign born- Not a citizen of U S|Foreign born- U S citizen by naturalization|"
        "Native- Born abroad of American Parent(s)|Native- Born in Puerto Rico or U S Outlying|"
        "Native- Born in the United States"
    ),
    "own_business": _CODES[:3],
    "veterans_admin_questionnaire": _ANSWERS,
    "veterans_benefits": _CODES[:3],
    "year": ("94", "95"),
    "income": ("-50000", "50000+"),
}
WITH_UNKNOWN = (
    *("state_previous_residence", "migration_msa", "migration_reg", "migration_within_reg", "migration_sunbelt"),
    *("country_father", "country_mother", "country_self"),
)
COLUMNS = (
    *("age", "class_of_worker", "industry_code", "occupation_code", "education", "wage_per_hour"),
    *("enrolled_in_education", "marital_status", "major_industry", "major_occupation", "race", "hispanic_origin"),
    *("sex", "labor_union", "reason_for_unemployment", "employment_status", "capital_gains", "capital_losses"),
    *("dividends", "tax_filer_status", "region_previous_residence", "state_previous_residence"),
    *("household_family_stat", "household_summary", "migration_msa", "migration_reg", "migration_within_reg"),
    *("live_here_1_year_ago", "migration_sunbelt", "num_persons_worked_for_employer", "family_members_under_18"),
    *("country_father", "country_mother", "country_self", "citizenship", "own_business"),
    *("veterans_admin_questionnaire", "veterans_benefits", "weeks_worked", "year", CLASS),
)


def census_income_schema(*, bins: int | None = None, rows_at_most: int = 300_000) -> Schema:
    """The 40 attributes and the class; numeric ones in `bins` equal bins, or on a default grid."""
    attributes = [
        numeric(name, RANGES[name], bins=None if RANGES[name][1] < 10 else bins)
        if name in RANGES
        else nominal(name, CATEGORIES[name], with_unknown=name in WITH_UNKNOWN)
        for name in COLUMNS
    ]
    return Schema("census-income", tuple(attributes), rows_at_most, class_attribute=CLASS, drop=(WEIGHT, SPLIT))
