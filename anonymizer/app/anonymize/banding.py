"""Bands of sensitive numbers: values of one band count as one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from anonymizer.algorithms.cells.banding import in_bands
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import CodedTable


def with_bands(coded: CodedTable, bands: Mapping[str, Sequence[float]]) -> CodedTable:
    """Return a table whose sensitive numbers are their bands; what is published stays as it is.

    Parameters
    ----------
    bands
        Rising edges, by name.

    Raises
    ------
    SettingsError
        If one is no sensitive attribute with numbers, or its edges do not rise.
    """
    attributes = list(coded.schema.sensitive)
    columns = coded.records.sensitive.copy()
    for name, edges in bands.items():
        places = [j for j, attribute in enumerate(attributes) if attribute.name == name]
        if not places or not attributes[places[0]].numeric:
            raise SettingsError(f"bands: {name} is no sensitive attribute with numbers")
        j = places[0]
        try:
            attributes[j], band_of = in_bands(attributes[j], edges)
        except ValueError as error:
            raise SettingsError(f"bands: {name}: {error}") from None
        columns[:, j] = band_of[columns[:, j]]
    return replace(
        coded,
        records=Records(coded.records.qi, columns, coded.records.person),
        schema=Schema(coded.schema.qis, tuple(attributes), coded.schema.sources),
    )
