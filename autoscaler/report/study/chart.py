"""Charts of a study as SVG text: lines and stacked areas over hours, with axes. No script and no font. Colour alone
identifies no series: each has its name beside the chart, and lines differ by dashes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from instance_catalog.dataclass import dataclass

_WIDTH: Final = 900
_HEIGHT: Final = 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 12, 34
# Colours that differ in lightness, too (Okabe and Ito, 2008).
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000", "#8a7f00")
_DASHES: Final = ("", "7 4", "2 3", "10 3 2 3")
_STEPS: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Series:
    """A named line: its values at the hours of the chart, None after its end."""

    name: str
    hours: Sequence[float]
    values: Sequence[float]


def line_chart(title: str, unit: str, series: Sequence[Series]) -> str:
    """Lines over the same hours."""
    axes = _Axes.of(series, top=max((max(s.values, default=0.0) for s in series), default=0.0))
    shapes = []
    for index, one in enumerate(series):
        points = " ".join(f"{axes.x(h):.1f},{axes.y(v):.1f}" for h, v in zip(one.hours, one.values, strict=True))
        shapes.append(
            f'<polyline fill="none" stroke="{_colour(index)}" stroke-width="1.8" stroke-dasharray="{_dash(index)}" '
            f'points="{points}"><title>{escape(one.name)}</title></polyline>'
        )
    return _picture(title, unit, axes, shapes, [one.name for one in series])


def area_chart(title: str, unit: str, series: Sequence[Series], *, top: float | None = None) -> str:
    """Areas on top of each other, the first at the bottom. `top`: the value at the upper edge, to compare pictures."""
    hours = series[0].hours if series else ()
    sums = [sum(values) for values in zip(*(one.values for one in series), strict=True)]
    axes = _Axes.of(series, top=max(sums, default=0.0) if top is None else top)
    below = [0.0] * len(hours)
    shapes = []
    for index, one in enumerate(series):
        above = [low + value for low, value in zip(below, one.values, strict=True)]
        there = [f"{axes.x(h):.1f},{axes.y(v):.1f}" for h, v in zip(hours, above, strict=True)]
        back = [f"{axes.x(h):.1f},{axes.y(v):.1f}" for h, v in zip(hours, below, strict=True)]
        points = " ".join([*there, *reversed(back)])
        shapes.append(f'<polygon fill="{_colour(index)}" points="{points}"><title>{escape(one.name)}</title></polygon>')
        below = above
    return _picture(title, unit, axes, shapes, [one.name for one in series])


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _dash(index: int) -> str:
    return _DASHES[index // len(COLOURS) % len(_DASHES)]


def _mark(index: int) -> str:
    """The background of its mark: with more series than colours, dashed as its line."""
    colour, stops, at = _colour(index), list[str](), 0
    for part, length in enumerate(map(int, _dash(index).split())):
        stops.append(f"{'transparent' if part % 2 else colour} {at}px {at + length}px")
        at += length
    return f"repeating-linear-gradient(90deg,{','.join(stops)})" if stops else colour


@dataclass(frozen=True, slots=True)
class _Axes:
    hours: float
    top: float

    @staticmethod
    def of(series: Sequence[Series], *, top: float) -> _Axes:
        hours = max((max(one.hours, default=0.0) for one in series), default=0.0)
        return _Axes(hours or 1.0, top * 1.05 or 1.0)

    def x(self, hour: float) -> float:
        return _LEFT + hour / self.hours * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self.top * (_HEIGHT - _TOP - _BOTTOM)


def _picture(title: str, unit: str, axes: _Axes, shapes: Sequence[str], names: Sequence[str]) -> str:
    marks = "".join(
        f'<span><i style="background:{_mark(i)}"></i>{escape(name)}</span> ' for i, name in enumerate(names)
    )
    grid = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{axes.y(v):.1f}" y2="{axes.y(v):.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{axes.y(v) + 4:.1f}" text-anchor="end">{_number(v)}</text>'
        for v in ticks(axes.top)
    ]
    foot = [
        f'<text x="{axes.x(h):.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{_number(h)}</text>'
        for h in ticks(axes.hours)
    ]
    return (
        f"<figure><figcaption>{escape(title)} <small>({escape(unit)})</small></figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(grid)}{''.join(shapes)}{''.join(foot)}"
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 4}" text-anchor="end">hours since the start</text></svg>'
        f'<p class="key">{marks}</p></figure>'
    )


def ticks(top: float) -> list[float]:
    """Round numbers from 0 to `top`, four to ten of them."""
    if top <= 0:
        return [0.0]
    step = 10.0 ** len(str(int(top)))
    while True:
        for part in reversed(_STEPS):
            if top / (step * part) >= 4:
                size = step * part
                return [size * index for index in range(int(top / size) + 1)]
        step /= 10


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"
