"""Dates in digits and compared forms, every pattern tried: the twins of what looks first."""

from anonymizer.domain import date_forms as dates
from anonymizer.domain import plain_forms as forms


def in_digits(text: str) -> str:
    """As `date_forms.in_digits`."""
    if len(text) < dates._SHORTEST or not dates._MAYBE.search(text):
        return text
    if found := dates._HOUR_AND_MINUTE.fullmatch(text):
        return f"{int(found[1]):02}:{found[2]}"
    if found := dates._WEEK_DAY.fullmatch(text):
        return dates._day_of_week(*map(int, found.groups())) or text
    for form, sign in dates._PARTS:
        if found := form.fullmatch(text):
            one, two, three, four, five, six = found.groups()
            return f"{one or four or six}{sign}{two or three or five}"
    bare = dates._WEEKDAY.sub("", text, count=1) if dates._WEEKDAY.match(text) else text
    for end, written in dates._ENDS:
        bare = end.sub(written, bare, count=1)
    bare = dates._SPACED.sub(r"\1.\2.", bare, count=1)
    if found := dates._COMPACT.match(bare):
        year, month, day, hour, minute, second, part = found.groups()
        clock = f"{hour}:{minute}" + (f":{second}{part or ''}" if second else "")
        bare = f"{year}-{month}-{day}T{clock}{bare[found.end() :]}"
    return dates._named(bare) or (bare if bare != text and bare[:1].isdigit() else text)


def compared_form(text: str) -> str:
    """As `plain_forms.compared_form`."""
    if text.isalpha():
        return text
    text = forms._CODED.sub(r"\2 \1", text)
    for _, form, put in forms._COMPARED:
        text = form.sub(put, text)
    return text
