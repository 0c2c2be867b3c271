"""Optional dependencies: the extras of the package, and the error when one is not installed.

A module of an extra is imported where it is used; a command that works for long checks first.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NamedTuple

from anonymizer.errors import SettingsError


class MissingExtraError(SettingsError, ImportError):
    """An extra is needed that is not installed; the message is one line that says how to."""


class Extra(NamedTuple):
    """One entry of `optional-dependencies` in pyproject.toml."""

    needed_by: str
    """What needs it, in the plural."""
    modules: tuple[str, ...]
    """The modules that it brings, as imported."""


DISTRIBUTION = "anonymizer-gateway"
"""What is installed; another distribution has the name of the package."""
EXTRAS: Mapping[str, Extra] = {
    "client": Extra("data frames of pandas and GeoPandas", ("pandas", "geopandas", "shapely")),
    "demo": Extra("demos without Mosquitto", ("amqtt",)),
    "dp": Extra("counts with differential privacy", ("opendp",)),
    "fit": Extra("rides in FIT", ("fitdecode",)),
    "h3": Extra("H3 cells", ("h3",)),
    "kafka": Extra("positions in Kafka, bridges and workers", ("confluent_kafka",)),
    "learn": Extra("decision trees, K-Means and estimators", ("sklearn", "threadpoolctl")),
    "mcp": Extra("tools for language models", ("mcp", "mcp_types")),
    "osm": Extra("networks from OpenStreetMap", ("osmium",)),
    "owntracks": Extra("encrypted messages of OwnTracks", ("nacl",)),
    "plots": Extra("plots", ("matplotlib",)),
    "skops": Extra("models of your own", ("skops",)),
    "sumo": Extra("networks from SUMO, and projected ones,", ("sumolib", "pyproj")),
    "tables": Extra("csv and parquet files", ("polars",)),
    "websockets": Extra("brokers at ws:// and wss://", ("websockets",)),
}
"""By name; `all` is all of them."""
SPARK_EXTRAS: Mapping[str, Extra] = {"spark": Extra("tables on Spark", ("pyspark", "pyarrow"))}
"""It needs other versions of some packages than `all`."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import an extra's modules inside this block.

    Raises `MissingExtraError` if one of them is not installed. Other modules that are missing raise
    as usual.
    """
    with any_extra(name):
        yield


@contextmanager
def any_extra(*names: str) -> Iterator[None]:
    """Import modules of some extras inside this block, of any if none is named.

    Raises as `extra`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        every = {**EXTRAS, **SPARK_EXTRAS}
        missing = (error.name or "").partition(".")[0]
        for name in names or every:
            if missing in every[name].modules:
                install = f"pip install '{DISTRIBUTION}[{name}]'"
                said = f'{every[name].needed_by} need the extra "{name}": {install}'
                raise MissingExtraError(said) from None
        raise


def require(*names: str) -> None:
    """Check that extras are installed, without importing them.

    Raises `MissingExtraError` naming the first that is not.
    """
    for name in names:
        with extra(name):
            for module in {**EXTRAS, **SPARK_EXTRAS}[name].modules:
                if find_spec(module) is None:
                    raise ModuleNotFoundError(name=module)
