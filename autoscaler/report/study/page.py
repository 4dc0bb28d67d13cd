"""A study as one HTML file without external parts: a table, and charts of cost, GPUs and waiting over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from autoscaler.report.printable import one_line
from autoscaler.report.study.chart import Series, area_chart, line_chart
from autoscaler.report.study.gap import Gap
from autoscaler.report.study.outcome import Outcome
from autoscaler.report.study.table import COLUMNS, outcome_rows, summary_lines

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #1a1a1a;
  background: #fff; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid #ddd; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
figure { margin: 1.6rem 0; } figcaption { font-weight: 600; } small { font-weight: 400; color: #555; }
svg { width: 100%; height: auto; display: block; } svg text { font: 11px system-ui, sans-serif; fill: #444; }
h1 { overflow-wrap: anywhere; } .scroll { overflow-x: auto; } .key span { white-space: nowrap; }
.grid { stroke: #e4e4e4; } .key { margin: .2rem 0 0; font-size: 13px; } .key i { display: inline-block; width: 1.8em;
  height: .9em; margin: 0 .3em 0 .9em; vertical-align: -.1em; }
"""


def study_page(name: str, outcomes: Sequence[Outcome], gap: Gap, left_out: Sequence[str] = ()) -> str:
    """The HTML text. Every text of a user is escaped, and no script runs. `left_out`: see study_document."""
    title = escape(one_line(name))
    lines = (*summary_lines(name, outcomes, gap), *(f"left out: {line}" for line in left_out))
    summary = "".join(f"<p>{escape(one_line(line))}</p>" for line in lines)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>foreslice simulate: {title}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{title}</h1>{summary}{_table(outcomes, gap)}{''.join(_pictures(outcomes))}</body></html>\n"
    )


def _table(outcomes: Sequence[Outcome], gap: Gap) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    found = outcome_rows(outcomes, gap)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in found)
    # On a narrow screen the table scrolls, and not the page with its pictures.
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _pictures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield line_chart("Cost so far", "$", [Series(o.name, _hours(o), [p.usd for p in o.timeline]) for o in outcomes])
    waiting = [Series(o.name, _hours(o), [p.waiting for p in o.timeline]) for o in outcomes]
    yield line_chart("Pods that wait", "pods", waiting)
    top = max((p.allocated + p.starting + p.idle for o in outcomes for p in o.timeline), default=0.0)
    for outcome in outcomes:
        states = [
            Series("allocated", _hours(outcome), [p.allocated for p in outcome.timeline]),
            Series("idle", _hours(outcome), [p.idle for p in outcome.timeline]),
            Series("starting", _hours(outcome), [p.starting for p in outcome.timeline]),
        ]
        yield area_chart(f"GPUs by state: {outcome.name}", "GPUs that are paid", states, top=top)


def _hours(outcome: Outcome) -> list[float]:
    return [point.at for point in outcome.timeline]
