"""What every table of the settings file is."""

from pydantic import BaseModel, ConfigDict


class Group(BaseModel):
    """A table of the settings file: unknown keys are mistakes, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
