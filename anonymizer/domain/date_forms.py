"""Dates and times as people and programs write them, as in ISO 8601: each cell by itself.

`Sun, 3 Mar 2024 10:11 UTC`, `March 2024` and `Q1 2024` say what they are. Whether the day or the
month comes first in `03/04/24` is said by the other cells of the column: `time_columns`.
"""

import re
import unicodedata
from datetime import date

_MONTHS = (
    (
        "january jan januar jaenner janner janvier janv enero ene gennaio gen janeiro"
        " januari \u044f\u043d\u0432\u0430\u0440\u044f \u044f\u043d\u0432 stycznia"
        " styczen ocak ledna"
    ),
    (
        "february feb februar fevrier fevr febrero febbraio fevereiro fev februari"
        " \u0444\u0435\u0432\u0440\u0430\u043b\u044f \u0444\u0435\u0432 lutego luty"
        " subat unora"
    ),
    (
        "march mar marz maerz mrz mars marzo marco maart mrt"
        " \u043c\u0430\u0440\u0442\u0430 \u043c\u0430\u0440 marca marzec mart brezna"
    ),
    (
        "april apr avril avr abril abr aprile \u0430\u043f\u0440\u0435\u043b\u044f"
        " \u0430\u043f\u0440 kwietnia kwiecien nisan dubna"
    ),
    (
        "may mai mayo maggio mag maio mei maj \u043c\u0430\u044f \u043c\u0430\u0438 maja"
        " mayis kvetna"
    ),
    (
        "june jun juni juin junio giugno giu junho \u0438\u044e\u043d\u044f"
        " \u0438\u044e\u043d czerwca czerwiec haziran cervna"
    ),
    (
        "july jul juli juillet juil julio luglio lug julho \u0438\u044e\u043b\u044f"
        " \u0438\u044e\u043b lipca lipiec temmuz cervence"
    ),
    (
        "august aug aout agosto ago augustus augusti"
        " \u0430\u0432\u0433\u0443\u0441\u0442\u0430 \u0430\u0432\u0433 sierpnia"
        " sierpien agustos srpna"
    ),
    (
        "september sep sept septembre septiembre settembre set setembro"
        " \u0441\u0435\u043d\u0442\u044f\u0431\u0440\u044f \u0441\u0435\u043d wrzesnia"
        " wrzesien eylul zari"
    ),
    (
        "october oct oktober okt octobre octubre ottobre ott outubro out"
        " \u043e\u043a\u0442\u044f\u0431\u0440\u044f \u043e\u043a\u0442 pazdziernika"
        " pazdziernik ekim rijna"
    ),
    (
        "november nov novembre noviembre novembro \u043d\u043e\u044f\u0431\u0440\u044f"
        " \u043d\u043e\u044f listopada listopad kasim"
    ),
    (
        "december dec dezember dez decembre diciembre dic dicembre dezembro"
        " \u0434\u0435\u043a\u0430\u0431\u0440\u044f \u0434\u0435\u043a grudnia grudzien"
        " aralik prosince"
    ),
)
_MONTH_OF = {word: i + 1 for i, words in enumerate(_MONTHS) for word in words.split()}
"""In English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Russian, Polish,
Turkish and Czech, without accents."""
_DAYS = (
    "mon monday tue tueday wed wedday thu thuday fri friday sat satday sun sunday tues tuesday"
    " wednes wednesday thurs thursday satur saturday thur mo di mi do fr sa so"
    " montag dienstag mittwoch donnerstag freitag samstag sonntag"
    " lundi mardi mercredi jeudi vendredi samedi dimanche"
)
_NAMES = frozenset((*_MONTH_OF, *_DAYS.split()))
_LETTERS = re.compile(r"[^\W\d_]+")
_WEEKDAY = re.compile(rf"(?i)(?:{'|'.join(_DAYS.split())})\.?,? +(?=\w.*\d)")
_YEAR = r"(?P<{}>\d{{4}}|'?\d\d(?![\d:]))"
_WORD = r"[^\W\d_]{3,12}"
_NAMED_DATE = re.compile(
    rf"(?:(?P<d>\d\d?)(?:st|nd|rd|th|er|\.|\u00ba)?[- /.]*(?:de )?(?P<m>{_WORD})\.?,?[- /.]*"
    rf"(?:del? )?{_YEAR.format('y')}"
    rf"|(?P<m2>{_WORD})\.? (?P<d2>\d\d?)(?:st|nd|rd|th)?, ?{_YEAR.format('y2')}"
    rf"|(?P<m4>{_WORD})\.? (?P<d4>\d\d?)(?:st|nd|rd|th)? (?P<y4>\d{{4}})"
    rf"|(?P<y5>\d{{4}})[- /.](?P<m5>{_WORD})[- /.](?P<d5>\d\d?)"
    r"|(?P<y3>\d{4})(?:\u5e74|\ub144 ?)(?P<m3>\d\d?)(?:\u6708|\uc6d4 ?)"
    r"(?P<d3>\d\d?)(?:\u65e5|\uc77c))"
    r"(?:(?: \u0433\.?)?(?P<rest>[T, ]+\d.*)?)"
)
_NAMED_MONTH = re.compile(
    rf"(?P<m>{_WORD})\.?,?[ /-](?:de )?(?P<y>\d{{4}})"
    rf"|(?P<y2>\d{{4}})[ /-](?P<m2>{_WORD})\.?|(?P<y3>\d{{4}})\u5e74(?P<m3>\d\d?)\u6708"
)
_CTIME = re.compile(
    rf"(?P<m>{_WORD}) +(?P<d>\d\d?) (?P<rest>[\d:.]+) (?:[A-Z]{{3}} )?(?P<y>\d{{4}})"
)
_WEEK_DAY = re.compile(r"(\d{4})-?W(\d\d)-?([1-7])")
_HOUR_AND_MINUTE = re.compile(r"([01]?\d|2[0-3]) ?[hH] ?([0-5]\d)(?: ?min)?")
_SHORTEST = len("9h03")
_MAYBE = re.compile(
    r"[^\W\d_]\D{0,3}\d\d|\d\D{0,3}[^\W\d_]|\u5e74|\ub144|\d[ .]+\d"
    r"|\D \d\d?\D{1,3}\d\d|\[|\d[AaPp]\."
)
_PARTS = (
    (
        re.compile(r"(\d{4})-?[QqTt]([1-4])|[QqTt]([1-4])[ /-](\d{4})|([1-4])[QqTt][ /-]?(\d{4})"),
        "-Q",
    ),
    (re.compile(r"(\d{4})[ -]?[WwSs](0[1-9]|[1-4]\d|5[0-3])()()()()"), "-W"),
)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(?:(\d\d)(\.\d+)?)?")
_SPACED = re.compile(r"(\d\d?)\. (\d\d?)\. (?=\d{4})")
_ENDS = (
    (re.compile(r"(?<=[\d.:]) ?(?:UTC|GMT|Etc/UTC)(?:[+-]00:?00)?$"), "Z"),
    (re.compile(r"(?<=\d)\[[A-Za-z]+/[\w/+-]+\]$"), ""),
    (re.compile(r"(?<=:\d\d)( ?[+-]\d\d)$"), r"\1:00"),
    (re.compile(r"(?<=\d\.\d)( ?[+-]\d\d)$"), r"\1:00"),
    (re.compile(r"(?<=\.\d{3})( ?[+-]\d\d)$"), r"\1:00"),
    (re.compile(r"(?<=\.\d{6})( ?[+-]\d\d)$"), r"\1:00"),
    (re.compile(r"(?i)(?<=\d)( ?[ap])\. ?m\.$"), r"\1m"),
    (re.compile(r"^(\d\d?)[.:](\d\d) (?:Uhr|h|hrs)$"), r"\1:\2"),
    (re.compile(r"(?<=\d{4}) \u0433\.?$"), ""),
)
_LAST_SIGNS = frozenset("CT].rhs\u0433\n")
_SIGNS_OF_ZONES, _ZONE = frozenset("+-"), len("+00:00")
"""With what a text ends if it has one of these ends."""
_CLOCK_OF_STOPS = re.compile(r"^([T, ]+\d\d?)\.([0-5]\d)\.([0-5]\d)(?=$|[^\d])")
_TWO_DIGITS, _FUTURE, _PIVOT = 2, 40, 69
"""Years of two digits are 1969 to 2039. From 40 to 68 they stay: POSIX has them in this century,
and people who write when they were born in the last one."""
YEAR_OF_EITHER_CENTURY = r"^\D{0,5}\d\d?[-/. ]\w{1,12}[-/. ]'?(4\d|5\d|6[0-8])\b"
TIME_WITHIN = "\\d[-/.:\u5e74]\\d" + r"|\d\D{1,14}\d\d|[^\W\d_]\D{0,3}\d{4}|\d{4}\D{0,2}[^\W\d_]"
"""What dates and times, and little else, have within, in any form."""
LIKE_A_DATE = (
    r"(?i)\b\d\d?[-/ ]\d\d?[-/ ]\d\d(\d\d)?\b|\b\d\d\.\d\d\.\d\d\b|\b\d{4}[-/. ]\d\d?[-/. ]\d\d?\b"
    r"|\b(jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}[-. ]+\d|\b\d\d?[-. ]+"
    r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b"
    r"|^(1[5-9]|2[01])\d\d-([0-2]\d\d|3[0-5]\d|36[0-6])$"
    rf"|^({'|'.join(word for words in _MONTHS for word in words.split())})\.?$"
)
"""What looks like a date, and is in no form that is read."""
_CENTURY = re.compile(r"(\d\d?)([/.])(\d\d?)\2(\d\d)((?:[T, ]+\d\d?:.*)?)", re.ASCII)
_MONTH_OF_YEAR = re.compile(r"(0?[1-9]|1[0-2])[-/.]((?:1[5-9]|2[01])\d\d)", re.ASCII)
_YEAR_AND_MONTH = re.compile(r"((?:1[5-9]|2[01])\d\d)[/.](0?[1-9]|1[0-2])", re.ASCII)


def in_digits(text: str) -> str:
    """Return a date or time that has words or is in a form of programs as in ISO 8601.

    A month is `2024-03`, a week `2024-W10`, a quarter `2024-Q1`, `9h03` is `09:03`. Any other text
    is as it was.
    """
    if len(text) < _SHORTEST or not _begins_like_a_time(text) or not _MAYBE.search(text):
        return text
    if found := _HOUR_AND_MINUTE.fullmatch(text):
        return f"{int(found[1]):02}:{found[2]}"
    if found := _WEEK_DAY.fullmatch(text):
        return _day_of_week(*map(int, found.groups())) or text
    for form, sign in _PARTS:
        if found := form.fullmatch(text):
            one, two, three, four, five, six = found.groups()
            return f"{one or four or six}{sign}{two or three or five}"
    bare = _WEEKDAY.sub("", text, count=1) if _WEEKDAY.match(text) else text
    if text[-1] in _LAST_SIGNS or not _SIGNS_OF_ZONES.isdisjoint(text[-_ZONE:]):
        for end, written in _ENDS:
            bare = end.sub(written, bare, count=1)
    bare = _SPACED.sub(r"\1.\2.", bare, count=1)
    if found := _COMPACT.match(bare):
        year, month, day, hour, minute, second, part = found.groups()
        clock = f"{hour}:{minute}" + (f":{second}{part or ''}" if second else "")
        bare = f"{year}-{month}-{day}T{clock}{bare[found.end() :]}"
    return _named(bare) or (bare if bare != text and bare[:1].isdigit() else text)


def _begins_like_a_time(text: str) -> bool:
    """Return whether a text begins with a digit, a quarter, or the name of a day or a month."""
    first = text[0]
    if first.isdigit() or first in "QqTt":
        return True
    word = _LETTERS.match(text)
    if word is None:
        return False
    name = word[0]
    return (name.casefold() if name.isascii() else _folded(name)) in _NAMES


def _day_of_week(year: int, week: int, day: int) -> str | None:
    """Return a day of an ISO week, in digits; None: the year has no such week."""
    try:
        return date.fromisocalendar(year, week, day).isoformat()
    except ValueError:
        return None


def _named(text: str) -> str | None:
    """Return a date that names its month, or a month, in digits; None: it is neither."""
    for form in (_NAMED_DATE, _CTIME, _NAMED_MONTH):
        if (found := form.fullmatch(text)) is None:
            continue
        part = {
            name[0]: value for name, value in found.groupdict().items() if value and name != "rest"
        }
        month = int(part["m"]) if part["m"].isdecimal() else _MONTH_OF.get(_folded(part["m"]))
        if month is None:
            continue
        year, day = _full_year(part["y"]), part.get("d")
        if year is None:
            return None
        rest = found.groupdict().get("rest") or ""
        if form is _CTIME:
            rest = f" {rest}"
        rest = _CLOCK_OF_STOPS.sub(r"\1:\2:\3", rest)
        return f"{year}-{month:02}" + (f"-{int(day):02}{rest}" if day else "")
    return None


def _folded(word: str) -> str:
    signs = unicodedata.normalize(
        "NFKD", word.casefold().replace("\u0142", "l").replace("\u0131", "i")
    )
    return "".join(sign for sign in signs if not unicodedata.combining(sign))


def _full_year(digits: str) -> str | None:
    """Return a year with four digits; None: it may be of either century."""
    year = digits.strip("'")
    if len(year) > _TWO_DIGITS:
        return year
    if _FUTURE <= int(year) < _PIVOT:
        return None
    return f"{19 if int(year) >= _PIVOT else 20}{year}"


def with_century(text: str) -> str:
    """Return a date whose year has two digits with four, `03/2024` as `2024-03`, all else as it is.

    A year from 40 to 68 may be of either century, and stays. For columns of such texts alone:
    `1.02.03` may be a version.
    """
    if found := _CENTURY.fullmatch(text):
        one, sign, two, year, rest = found.groups()
        full = _full_year(year)
        return text if full is None else f"{one}{sign}{two}{sign}{full}{rest}"
    if found := _MONTH_OF_YEAR.fullmatch(text):
        return f"{found[2]}-{int(found[1]):02}"
    if found := _YEAR_AND_MONTH.fullmatch(text):
        return f"{found[1]}-{int(found[2]):02}"
    return text
