"""Base class of all tables of the settings file, and the types that several tables share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Group(BaseModel):
    """A table of the settings file: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


AtLeastOne = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Longitude = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]

NonEmpty = Annotated[str, Field(min_length=1)]
FieldName = Annotated[str, Field(min_length=1, max_length=64)]
"""Name of a field in a payload or message."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
"""Name that becomes a part of topics, labels and file names."""
OutputTopic = Annotated[str, Field(min_length=1, pattern=r"^[^+#\x00]+$")]
"""MQTT topic without wildcards."""
Qos = Literal[0, 1]
