"""Small HTML tables for notebooks. All text is escaped: a name may contain anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from clusterea.types.rounding import rounded


def html_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[object]], *, note: str = ""
) -> str:
    """A title, a table, and a note; numbers as in `shown`."""
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f"<div><p><b>{escape(title)}</b></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f"<p>{escape(note)}</p></div>" if note else "</div>")
    )


def shown(value: object) -> str:
    """The value as text: an int with thousands separators, a float as in `rounded`."""
    if isinstance(value, float):
        return rounded(value, 3)
    return f"{value:,}" if isinstance(value, int) else str(value)
