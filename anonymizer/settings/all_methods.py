"""Settings of every method at once: what `anonymizer init --all` writes, and what the demo runs.

`simulator run --all` sends what they receive.
"""

import tomllib
from typing import Any

ALL_METHODS = """\
## Sensors that stand still, published as they are.
[[inputs]]
topic = "sensors/{device}"
kind = "public"

[[readings]]
name = "no2_ugm3"
lo = 0.0
hi = 400.0
step = 1.0

[[readings]]
name = "temperature_c"
lo = -40.0
hi = 60.0
step = 0.5

## (k,d): the same vehicles by type, age and speed. At least k vehicles share the values of a class,
## and behind each value stand at least d.
[[streams]]
name = "fleet"
model = "kd"
window_s = 300.0
lateness_s = 10.0
promise = { k = 10, d = 2 }

[[streams.sources]]
name = "registration"                   # topic: records/registration/{vehicle}
tells = ["type", "region", "built"]

[[streams.sources]]
name = "telemetry"
tells = ["speed_kmh"]

[[streams.attributes]]
name = "type"
values = ["motorcycle", "car", "van", "truck", "bus"]
lasting = true

[[streams.attributes]]
name = "region"
values = ["north", "east", "south", "west"]
lasting = true

[[streams.attributes]]
name = "built"
lo = 1990
hi = 2026
lasting = true

[[streams.attributes]]
name = "speed_kmh"
lo = 0
hi = 160

## (k,l,d): who drives them. Besides, each class has at least l different alerts, so that it tells
## nobody's.
[[streams]]
name = "drivers"
model = "kld"
window_s = 300.0
lateness_s = 10.0
promise = { k = 10, d = 2, l = 2 }

[[streams.sources]]
name = "profile"                        # topic: records/profile/{vehicle}
tells = ["age", "licence_years"]

[[streams.sources]]
name = "telemetry"
tells = ["brakings_per_hour", "alert"]

[[streams.attributes]]
name = "age"
lo = 18
hi = 80
lasting = true

[[streams.attributes]]
name = "licence_years"
lo = 0
hi = 62
lasting = true

[[streams.attributes]]
name = "brakings_per_hour"
lo = 0
hi = 60

[[streams.attributes]]
name = "alert"
role = "sensitive"
values = ["none", "speeding", "lane", "distraction", "drowsiness"]

## Cells of a decision tree: at least k vehicles and l faults in each. It reads the topic of
## telemetry, too. Each value goes to one of these streams, so that nobody can intersect them.
[[streams]]
name = "health"
model = "cells"
labels = "range"
window_s = 300.0
lateness_s = 10.0
promise = { k = 10, l = 2 }

[[streams.sources]]
name = "telemetry"
tells = ["fuel_percent", "engine_c", "fault"]

[[streams.attributes]]
name = "fuel_percent"
lo = 0
hi = 100

[[streams.attributes]]
name = "engine_c"
lo = 0
hi = 150

[[streams.attributes]]
name = "fault"
role = "sensitive"
values = ["none", "tyres", "brakes", "battery", "engine"]

## KACA: exits of trucks from toll roads, clustered by section and time. The toll API answers from
## these windows: GET /api/analytics/truck/exit-hourly-flow-k-anonymized
[[streams]]
name = "toll"
model = "kaca"
per = "record"
trucks_only = true
window_s = 300.0
lateness_s = 10.0
language = "en"
promise = { k = 5 }

[[streams.sources]]
name = "exit"
topic = "toll/exit/{vehicle}"
time = "exit_time"
where = { vehicle_type = "truck" }
tells = ["section_region", "time_period", "avg_toll"]

[[streams.attributes]]
name = "section_region"
path = "section_id"
values = [
  "N1-010", "N1-020", "N1-030", "N1-040", "N2-010", "N2-020", "N2-030", "N2-040",
  "N3-010", "N3-020", "N3-030", "N3-040", "N4-010", "N4-020", "N4-030", "N4-040",
  "S1-010", "S1-020", "S1-030", "S1-040", "S2-010", "S2-020", "S2-030", "S2-040",
  "S3-010", "S3-020", "S3-030", "S3-040", "S4-010", "S4-020", "S4-030", "S4-040",
]
label = "prefix"

[[streams.attributes]]
name = "time_period"
path = "left_at"                        # the hour where the vehicles drive
values = "time_of_day"
label = "hours"

[[streams.attributes]]
name = "avg_toll"
path = "toll_money"
role = "measure"
lo = 0
hi = 5000
step = 0.01
"""
"""What is added to the first settings: sensors, and streams of records, as TOML."""


def all_methods(**of_streams: float) -> dict[str, Any]:
    """Return the tables of `ALL_METHODS`, with these keys changed in every stream."""
    tables = tomllib.loads(ALL_METHODS)
    tables["streams"] = [stream | of_streams for stream in tables["streams"]]
    return tables
