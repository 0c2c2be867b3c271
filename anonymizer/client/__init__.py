"""The client of analysts: published releases as data frames, and counts with error bars.

>>> from anonymizer import client
>>> releases = client.listen("mqtt://127.0.0.1:1883", seconds=60)  # doctest: +SKIP
>>> heat = releases.heat_map(releases.network.grid(500))  # doctest: +SKIP
>>> heat.to_geopandas().plot("devices", legend=True)  # doctest: +SKIP

It reads what the gateway publishes, and nothing else; docs/analyst.md has examples.
"""

from typing import TYPE_CHECKING

from anonymizer.errors import InputError
from anonymizer.first_use import on_first_use

if TYPE_CHECKING:
    from anonymizer.client.cells import Cells as Cells
    from anonymizer.client.counts import read_counts as read_counts
    from anonymizer.client.listening import Subscription as Subscription
    from anonymizer.client.network import Network as Network
    from anonymizer.client.network import read_network as read_network
    from anonymizer.client.opening import listen as listen
    from anonymizer.client.opening import subscribe as subscribe
    from anonymizer.client.quality import Quality as Quality
    from anonymizer.client.recordings import read as read
    from anonymizer.client.releases import Releases as Releases
    from anonymizer.client.street_hours import read_street_hours as read_street_hours
    from anonymizer.client.tables import Table as Table
    from anonymizer.client.trip_files import read_trips as read_trips

__getattr__ = on_first_use(__name__, {
    "cells": ("Cells",),
    "counts": ("read_counts",),
    "listening": ("Subscription",),
    "network": ("Network", "read_network"),
    "opening": ("listen", "subscribe"),
    "quality": ("Quality",),
    "recordings": ("read",),
    "releases": ("Releases",),
    "street_hours": ("read_street_hours",),
    "tables": ("Table",),
    "trip_files": ("read_trips",),
})  # fmt: skip

__all__ = [
    "Cells",
    "InputError",
    "Network",
    "Quality",
    "Releases",
    "Subscription",
    "Table",
    "listen",
    "read",
    "read_counts",
    "read_network",
    "read_street_hours",
    "read_trips",
    "subscribe",
]
