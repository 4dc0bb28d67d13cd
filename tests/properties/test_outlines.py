"""Random selectors, compiled one after another, are what each is alone: tenants share the trees that are kept."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.cel import program
from tests.unit.cel.test_outlines import MEMORY, compiled, forget

TEXT = 'device.attributes["gpu.example.com"].text'
OF_QUANTITIES = (
    f"{MEMORY}.compareTo(#) >= 0",
    f"{MEMORY}.isGreaterThan(#)",
    f"[#].exists(x, {MEMORY} == x)",
    f"# in [#, {MEMORY}]",
    f"cel.bind(quantity, #, {MEMORY}.compareTo(quantity) < 0)",
    f'"𝔘é" != "" && {MEMORY}.compareTo(#) > 0',
    f"{MEMORY}.sub(#).sign() > 0",
    "optional.of(#).optMap(y, y.compareTo(quantity('20Gi')) > 0).orValue(false)",
)
OF_STRINGS = (f"{TEXT} == #", f"{TEXT} != #", f"{TEXT} in [#, #]", f"{TEXT}.contains(#)", "# == #")
# Where a constant stands, and where it only looks like one.
QUANTITIES = ('quantity("{}")', "quantity('{}')", 'quantity( "{}" )', 'quantity(\n"{}"\n)')
STRINGS = ("'quantity(\"{}\")'", "\"quantity('{}')\"", "r'quantity(\"{}\")'", "'''quantity(\"{}\")'''")
ODD = (
    'quantity(r"{}")', 'quantity("""{}""")', 'quantity(b"{}")', 'quantity("\\x31{}")', 'quantity("é{}")',
    '.quantity("{}")', 'x.quantity("{}")', 'quantity("{}", "{}")', 'quantity ("{}")', 'isQuantity("{}")',
    'quantity("{}" // quantity("{}")\n)', 'semver("{}")',
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(("15Gi", "20Gi", "30Gi", "9.9M", "1000", "5Gi", "100Gi")),
    st.text("0123456789GiMkmEe.-+xXabc", min_size=1, max_size=6),
)


@st.composite
def selectors(draw: st.DrawFn) -> list[str]:
    """Four selectors that differ only in their constants, of which most have the same length."""
    kinds = ((OF_QUANTITIES, QUANTITIES),) * 4 + ((OF_STRINGS, STRINGS),) * 4 + ((OF_QUANTITIES, ODD),)
    parts = []
    for expressions, forms in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3)):
        part = draw(st.sampled_from(expressions))
        while "#" in part:
            part = part.replace("#", draw(st.sampled_from(forms)), 1)
        parts.append(part)
    pattern = draw(st.sampled_from((" && ", " || "))).join(parts)
    pattern += draw(st.sampled_from(("", "", ' // quantity("{}")')))
    return [_filled(draw, pattern) for _ in range(4)]


def _filled(draw: st.DrawFn, text: str) -> str:
    while "{}" in text:
        text = text.replace("{}", draw(VALUES), 1)
    return text


def test_a_selector_after_others_is_what_it_is_alone() -> None:
    kept = 0

    @settings(max_examples=400, deadline=None)
    @given(selectors())
    def compare(texts: list[str]) -> None:
        nonlocal kept
        alone = []
        for text in texts:
            forget()
            alone.append(compiled(text))
        forget()
        assert [compiled(text) for text in texts] == alone
        kept += bool(program._OUTLINES)

    compare()
    assert kept > 50, "too few of them share a tree to say anything"
