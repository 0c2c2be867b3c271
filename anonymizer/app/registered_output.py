"""The schema of the cloaked positions in Kafka, as the contract has it."""

from typing import Literal

from anonymizer.app.avro_schema import avro_schema
from anonymizer.outputs.groups_contract import DEVICE, GROUP
from anonymizer.settings import Settings
from anonymizer.transport.schema_registry import RegisteredSchema

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def registered_schemas(settings: Settings) -> dict[str, RegisteredSchema]:
    """Return what is to be registered, by topic of Kafka; nothing without a registry.

    Raises
    ------
    MissingExtraError
        If the messages are to be in Avro, and its extra is not installed.
    """
    topic = settings.output.kafka
    if topic is None or not settings.kafka.schema_registry:
        return {}
    [(form, url)] = settings.kafka.schema_registry.items()
    schema = schema_of_output(settings.output.form, form)
    url_ = url.get_secret_value()
    return {topic: RegisteredSchema(url_, topic=topic, form=form, schema=schema)}


def schema_of_output(
    output: Literal["group", "device"], form: Literal["json", "avro"]
) -> dict[str, object]:
    """Return the schema of the messages about groups, or about devices."""
    message = GROUP if output == "group" else DEVICE
    schema = message.schema or {}
    if form == "avro":
        return avro_schema(schema, message.name)
    return {"$schema": _DIALECT, **schema}
