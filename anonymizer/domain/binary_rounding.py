"""Binary rounding: what programs add to a number when they reckon in binary floats.

`37.199999999999996` is 37.2: a float keeps 15 decimal digits, and what follows is its own.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal

KEPT_DIGITS = 15
_KEPT = Context(prec=KEPT_DIGITS, rounding=ROUND_HALF_EVEN)


def without_rounding(number: Decimal) -> Decimal:
    """Return a number by 15 significant digits; whole numbers, such as codes, stay."""
    if len(number.as_tuple().digits) <= KEPT_DIGITS or number == number.to_integral_value():
        return number
    return _KEPT.plus(number)
