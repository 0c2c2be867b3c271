"""Texts in a notation that leaves blanks, tags or the order of its parts to whoever writes it."""

import json
import re

_TAG = re.compile(r"(?i)</?(?:b|i|u|em|strong|span|p|br|div|font|small|big|a|td|li)(?: [^<>]*)?/?>")
_SHAPE = re.compile(r"(?i)(?:srid=\d+ *; *)?(?:multi)?(?:point|linestring|polygon)[ zm]*\(.*\)")
_AROUND_SIGNS, _ZEROS = re.compile(r" *([(),;]) *"), re.compile(r"(?<=\d)\.0+(?!\d)")


def unwrapped(text: str) -> str:
    """Return a text without tags of HTML, an object of JSON by its keys, a shape in one writing.

    Of a text that ends with `>`, `}` or `)`; any other one stays as it is.
    """
    if text[-1] == ">":
        return _TAG.sub("", text)
    if text[-1] == "}":
        try:
            return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)
        except (ValueError, RecursionError):
            return text
    if _SHAPE.fullmatch(text.strip()):
        text = _AROUND_SIGNS.sub(r"\1", _ZEROS.sub("", " ".join(text.split())))
        return text.replace(" ", ";")  # a blank beside a digit would not be compared
    return text
