"""Version of a road network: a hash by which a release names the network of its regions."""

from hashlib import blake2b

import numpy as np

from anonymizer.domain.network import RoadNetwork

_DIGITS_OF_A_DEGREE = 7
_DIGITS_OF_A_METRE = 2


def network_version(network: RoadNetwork) -> str:
    """Return 16 hexadecimal digits that follow from the nodes and roads of a network.

    Notes
    -----
    It covers names, coordinates, ends, lengths and corners, and with them all that a region can
    mean and look like.
    Coordinates count to 1 cm and lengths to 1 cm, so that another machine or another file format
    gives the same version. O(nodes + roads).
    """
    digest = blake2b(digest_size=8)
    names = network.node_id.astype(np.str_).tolist()
    digest.update("\n".join(names).encode())
    for degrees in (network.lat, network.lon):
        digest.update(_whole(degrees, _DIGITS_OF_A_DEGREE))
    digest.update(network.first_arc_of.astype("<i8").tobytes())
    digest.update(network.neighbour_of.astype("<i8").tobytes())
    digest.update(_whole(network.length_m, _DIGITS_OF_A_METRE))
    if network.shapes is not None:
        digest.update(network.shapes.first_corner_of.astype("<i8").tobytes())
        for degrees in (network.shapes.lat, network.shapes.lon):
            digest.update(_whole(degrees, _DIGITS_OF_A_DEGREE))
    return digest.hexdigest()


def _whole(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", digits: int) -> bytes:
    """Return numbers as whole multiples of a power of ten; NaN as the smallest integer."""
    scaled = np.rint(values * 10.0**digits)
    lowest = np.iinfo(np.int64).min
    return np.where(np.isnan(scaled), lowest, np.nan_to_num(scaled)).astype("<i8").tobytes()
