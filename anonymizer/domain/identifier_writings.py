"""Writings of identifiers that differ in more than signs: short addresses, names in any order.

Each of these writings becomes the plain one, before blanks and signs are left out.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv6Address

from anonymizer.domain.plain_forms import bare_form, in_latin_letters, plain_form

_SCHEME = r"(?i)^ *(?:tel|sms|callto|sips?|mailto|(?:urn:)?(?:uuid|imei|vin)): *(.)"
_TITLES = "dr|prof|med|phil|ing|dipl|mrs?|ms|miss|herrn?|frau|mme|mlle|monsieur|madame"
_TITLE = rf"(?i)^ *(?:(?:{_TITLES})"
_DEGREE = r"(?:ph\.? ?d|m\.?d|mba|esq|[mb]\.?sc)\.?"
_GENERATION = r"[js]r|iii?|iv"
WRITINGS = (
    (_SCHEME, "$1"),
    (r"^[^<>@]*<([^<>@ ]+@[^<>@ ]+)>$", "$1"),
    (r"^(\+|00)([0-9 -]{1,6})\(0\)", "$1$2"),
    (r"^0[xX]([0-9a-fA-F]+)$", "$1"),
    (rf"(?i)^([^0-9]+?)(?:, *| +){_DEGREE}$", "$1"),
    (rf"(?i)^([^0-9]+?), *({_GENERATION})\.?$", "$1 $2"),
    (r"^([^0-9,;:@/]+), *([^0-9,;:@/]+)$", "$2 $1"),
    (rf"{_TITLE}(?:\. *| +))+([^0-9]+)$", "$1"),
)
"""A mail address with a name around, a trunk prefix, hexadecimal digits, degrees and `Jr.` behind
a comma or none, the last name first, and titles, which some write."""
LONG_ADDRESS = r"(?i)^\[?(?:[0-9a-f:]*::[0-9a-f:.]*|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4})\]?$"
ANY = (
    r"(?i)^0x|^ *(?:tel|sms|callto|sip|mailto|urn|uuid|imei|vin)|<.*@|\(0\)|::|(?::.*){7}"
    rf"|, *[^0-9]+$|^ *(?:{_TITLES})[. ]|[, ]{_DEGREE}$"
)
_SPELLED_OUT = str.maketrans(
    {"\u00e4": "ae", "\u00f6": "oe", "\u00fc": "ue", "\u00f8": "oe", "\u00e5": "aa", "\u00e6": "ae"}
)
_BARE = str.maketrans(
    {"\u00e4": "a", "\u00f6": "o", "\u00fc": "u", "\u00f8": "o", "\u00e5": "a", "\u00e6": "ae"}
    | {"\u0153": "oe", "\u0142": "l", "\u0111": "d"}
)


def one_writing(text: str) -> str:
    """Return an identifier in its plain writing."""
    if not re.search(ANY, text):
        return text
    for form, put in WRITINGS:
        text = re.sub(form, put.replace("$", "\\"), text, count=1)
    return in_full(text) if re.search(LONG_ADDRESS, text) else text


def letters_of(text: str) -> str:
    """Return an identifier in small Latin letters without accents, where letters look like them."""
    return in_latin_letters(bare_form(plain_form(text).casefold()).translate(_BARE))


def spelled_out(texts: Iterable[str]) -> dict[str, str]:
    """Return the umlauts of identifiers in two letters, `mueller`, by what has them in one."""
    lower = ((text, plain_form(text).casefold()) for text in texts)
    return {text: letters_of(each.translate(_SPELLED_OUT)) for text, each in lower
            if each.translate(_SPELLED_OUT) != each}  # fmt: skip


def in_full(text: str) -> str:
    """Return an IPv6 address with all its digits, and an IPv4 address within one by itself."""
    try:
        address = IPv6Address(text.strip("[]"))
    except ValueError:
        return text
    return f"ip{address.packed.hex()}" if address.ipv4_mapped is None else str(address.ipv4_mapped)
