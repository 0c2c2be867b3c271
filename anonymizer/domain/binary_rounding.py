"""Binary rounding: what programs add to a number when they reckon in binary floats.

`37.199999999999996` is 37.2: a float keeps 15 decimal digits, and what follows is its own. So is
`37.20000076293945`, which is 37.2 as a float of 32 bits that another program has read as one of 64.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np

KEPT_DIGITS = 15
_DIGITS_OF_32, _MOST_OF_32 = 11, 3e38
_KEPT = Context(prec=KEPT_DIGITS, rounding=ROUND_HALF_EVEN)


def without_rounding(number: Decimal) -> Decimal:
    """Return a number by 15 significant digits; whole numbers, such as codes, stay.

    A float of 32 bits becomes the shortest number that is one.
    """
    n_digits = len(number.as_tuple().digits)
    if n_digits < _DIGITS_OF_32 or number == number.to_integral_value():
        return number
    near = float(number)
    if abs(near) < _MOST_OF_32 and float(short := np.float32(near)) == near:
        return Decimal(str(short))
    return _KEPT.plus(number) if n_digits > KEPT_DIGITS else number
