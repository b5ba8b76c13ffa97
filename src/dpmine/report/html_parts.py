"""Pages that stand alone, put together from sections, facts and tables. No scripts, and nothing from outside."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from dpmine.report.page_style import STYLE
from dpmine.report.words import clean

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, head: str, sections: Sequence[str], footer: str, *, kind: str = "") -> str:
    """A whole page. All but the title is HTML already; `kind` is a class of its body."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="robots" content="noindex">',
            f"<title>{html_text(title)}</title><style>{STYLE}</style></head>",
            f'<body class="{kind}"><main><header>{head}</header>',
            *sections,
            f"<footer><p>{footer}</p></footer></main></body>",
            "</html>",
            "",
        ]
    )


def section(title: str, body: str) -> str:
    return f"<section><h2>{html_text(title)}</h2>{body}</section>"


def facts_list(facts: Iterable[tuple[str, object]]) -> str:
    """Names and values as small cards."""
    cells = "".join(f"<div><dt>{html_text(name)}</dt><dd>{html_text(fact)}</dd></div>" for name, fact in facts)
    return f'<dl class="facts">{cells}</dl>'


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], sides: str) -> str:
    """A table with a caption; `rows` are HTML already, `sides` is l or r for each column."""
    kinds = [' class="number"' if side == "r" else "" for side in sides]
    head = "".join(f'<th scope="col"{kind}>{html_text(name)}</th>' for name, kind in zip(header, kinds, strict=False))
    body = "".join(f"<tr>{''.join(_cells(row, kinds))}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{html_text(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cells(row: Sequence[str], kinds: Sequence[str]) -> Iterator[str]:
    yield f'<th scope="row">{row[0]}</th>'
    for cell, kind in zip(row[1:], kinds[1:], strict=False):
        yield f"<td{kind}>{cell}</td>"


def html_text(text: object) -> str:
    return escape(clean(str(text)))
