"""Payload codecs: bytes in, fixes or reasons out. One module a format.

A codec never raises, whatever the bytes. It returns one entry for each position in the message,
and exactly one when it refuses the message whole. It is strict: a number is a number, neither
text nor a boolean, unless the format itself writes it so. What it does not need it ignores.

What a device sensed comes along as readings, under the names that each codec documents. A bad
reading is left out; it does not spoil the position.
"""

from anonymizer.codecs import (
    gtfs_rt,
    gtfs_rt_json,
    hfp,
    home_assistant,
    j2735,
    meshtastic,
    native,
    ngsi_ld,
    owntracks,
    traccar,
    ttn,
)
from anonymizer.codecs._fields import Codec

__all__ = ["CODECS", "Codec"]

CODECS: dict[str, Codec] = {
    "native": native.decode,
    "owntracks": owntracks.decode,
    "hfp": hfp.decode,
    "traccar": traccar.decode,
    "home_assistant": home_assistant.decode,
    "gtfs_rt_json": gtfs_rt_json.decode,
    "gtfs_rt": gtfs_rt.decode,
    "j2735": j2735.decode,
    "meshtastic": meshtastic.decode,
    "ttn": ttn.decode,
    "ngsi_ld": ngsi_ld.decode,
}
