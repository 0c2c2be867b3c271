"""A look that spares patterns changes nothing of what they find."""

from hypothesis import example, given
from hypothesis import strategies as st

from anonymizer.domain.date_forms import in_digits
from anonymizer.domain.plain_forms import compared_form
from tests.domain import naive_plain_forms as naive

_PARTS = (
    "Sun, |Sunday |sat|3|03|12| |Mar|March|MAY|janv.|mardi |hello|p|x|2024|'24|10:11|10h03|UTC"
    "| GMT|Z|+01|+02:00|-00:00|[Europe/Berlin]|Q1|q3|-W10|2024-W10-3|a.m.| p. m.| Uhr| h|st|th"
    "|20240301T101112|1. 3. |a1b2|A01.1|1,000|pct| per cent|,|.|/|-|_|:|(|)|[|]|{|}|%|<|>|=|=>|=<"
    "|\u0433.|\u0434\u0435\u043a|2024\u5e743\u6708|3\u65e5|\ub144|\u00b2|\u0663|\u2265|\u2264"
    "|ao\u00fbt|\n"
)
texts = st.lists(st.sampled_from(_PARTS.split("|")), max_size=7).map("".join)


@given(texts)
@example("Sun, 3 Mar 2024 10:11 UTC")
def test_a_date_is_read_as_by_all_patterns(text: str) -> None:
    assert in_digits(text) == naive.in_digits(text)


@given(texts)
@example("\u2265<5")
def test_a_text_is_compared_as_by_all_patterns(text: str) -> None:
    assert compared_form(text) == naive.compared_form(text)
