"""Payload codecs: bytes in, fixes or reasons for refusal out. One module for each format.

A codec never raises, whatever the bytes. It returns one entry for each position in the message,
and exactly one entry when it refuses the whole message. It is strict: a number must be a number,
not text or a boolean, unless the format itself writes it so. It ignores fields that it does not
need.

Most formats have a writer too, of coarse points: see `codecs.coarse`.

Sensor values are returned as readings, under the names that each codec documents. A bad reading
is left out; it does not invalidate the position.
"""

from anonymizer.codecs import (
    etsi_cam,
    gtfs_rt,
    gtfs_rt_json,
    hfp,
    home_assistant,
    j2735,
    meshtastic,
    msgpack,
    native,
    ngsi_ld,
    owntracks,
    traccar,
    ttn,
)
from anonymizer.codecs._fields import Codec
from anonymizer.codecs.coarse import CoarsePoint, Encoder

__all__ = ["CODECS", "ENCODERS", "NAMED_BY_TOPIC", "CoarsePoint", "Codec", "Encoder"]

CODECS: dict[str, Codec] = {
    "native": native.decode,
    "msgpack": msgpack.decode,
    "owntracks": owntracks.decode,
    "hfp": hfp.decode,
    "traccar": traccar.decode,
    "home_assistant": home_assistant.decode,
    "gtfs_rt_json": gtfs_rt_json.decode,
    "gtfs_rt": gtfs_rt.decode,
    "j2735": j2735.decode,
    "etsi_cam": etsi_cam.decode,
    "meshtastic": meshtastic.decode,
    "ttn": ttn.decode,
    "ngsi_ld": ngsi_ld.decode,
}

ENCODERS: dict[str, Encoder] = {
    "native": native.encode,
    "msgpack": msgpack.encode,
    "owntracks": owntracks.encode,
    "traccar": traccar.encode,
    "home_assistant": home_assistant.encode,
    "gtfs_rt_json": gtfs_rt_json.encode,
    "gtfs_rt": gtfs_rt.encode,
    "j2735": j2735.encode,
    "etsi_cam": etsi_cam.encode,
    "meshtastic": meshtastic.encode,
    "ngsi_ld": ngsi_ld.encode,
}
"""Writers of coarse points, by the names of the codecs; the other formats cannot be written."""
NAMED_BY_TOPIC = frozenset({"owntracks", "home_assistant"})
"""Formats whose messages leave it to their topic to name the device."""
