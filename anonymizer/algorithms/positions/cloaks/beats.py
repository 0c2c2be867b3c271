"""When lasting groups publish: those of large places more rarely, and all take turns.

Times depend on nothing but what is published: the places of the groups, their order, their ends,
and how many of the devices in them stand still.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.atoms import LEVELS
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

STANDS_S = 60.0
"""Who has stayed near one node for so long stands still."""
_STANDING = 0.25
"""Many stand if at least this share does; otherwise nearly all move."""
_QUICKER = 3.0
"""Where nearly all move, large places have a beat so many times shorter: by default the largest are
shown three times in an epoch, not once. None has a shorter one than the smallest."""


def beat_of(
    beat_s: float, times: FloatArray | float, *, moves: BoolArray | bool = False
) -> FloatArray:
    """Return how often a group publishes, shape of `times`.

    `beat_s` is that of the smallest places; `times` is the size of the largest place of the members
    in multiples of the smallest; `moves`: whether nearly all devices that are published move.

    Notes
    -----
    Who drives takes √n times as long to cross a place of n times as many nodes. The largest place
    counts, because all members publish together: a beat that suits those in a full car park would
    tell where their loneliest companion drives. That somebody drives on raises the belief in
    where it is by 1 / (1 - s) if a share s of all devices stands still, whatever the places are:
    where s is small, this is the lesser part, and beats may be shorter.
    """
    widths = np.sqrt(times)
    beats: FloatArray = beat_s * np.where(moves, np.maximum(widths / _QUICKER, 1.0), widths)
    return beats


def longest_beat_s(beat_s: float) -> float:
    """Return how often a group of the largest places publishes at least, see `beat_of`."""
    return float(beat_of(beat_s, LEVELS[-1]))


class Paces(NamedTuple):
    """On which of several networks many devices stand still, and on which nearly all move.

    Shapes (networks,). What is not known counts as standing: that asks for more company, and for
    longer beats.
    """

    many_stand: BoolArray
    nearly_all_move: BoolArray


def paces(
    stands: BoolArray, moves: BoolArray, layer: IntArray, n_needed: IntArray, *, k_extra: int
) -> Paces:
    """Return how the published devices of each network move.

    Parameters
    ----------
    stands, moves, layer
        Whether each device may stand still, whether it is known to move, and its network, shape
        (published,).
    n_needed
        Devices that give the largest places of each network company on average, shape (networks,).
        Where fewer are published, nothing is said of nearly all.
    k_extra
        Devices that may belong to the adversary. Not many stand only if that holds without so many
        that move.
    """

    def n(chosen: BoolArray) -> IntArray:
        return np.bincount(layer[chosen], minlength=len(n_needed))

    n_all = np.bincount(layer, minlength=len(n_needed))
    return Paces(
        n(stands) + k_extra >= _STANDING * n_all,
        (n_all - k_extra >= n_needed) & (n(~moves) + k_extra < _STANDING * n_all),
    )


def at_equal_distances(beat_s: FloatArray, lifetime_s: FloatArray) -> FloatArray:
    """Return beats that are not shorter, and divide the life of each group, shape (groups,).

    A last release just before the first one of the next group would tell more, and make nothing
    fresher.
    """
    beats: FloatArray = lifetime_s / np.maximum(np.floor(lifetime_s / beat_s), 1.0)
    return beats


def turns_s(layer: IntArray, most_s: FloatArray) -> FloatArray:
    """Return the seconds until each new group publishes first, shape (groups,).

    They take turns in their order, those on one of several networks by themselves, so that every
    tick publishes about as many. `most_s`: within which each has its turn.
    """
    turn = np.empty(len(layer))
    turn[np.argsort(layer, kind="stable")] = np.concatenate(
        [np.arange(n) / n for n in np.bincount(layer) if n] or [layer]
    )
    turns: FloatArray = most_s * turn
    return turns
