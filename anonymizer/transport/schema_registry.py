"""Schemas of Kafka's messages in a schema registry, by the protocol of Confluent's.

A message begins with a zero byte and the number of its schema, four bytes with the highest first;
then comes its content. Apicurio, Karapace and Redpanda speak the same protocol.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

import msgspec

from anonymizer.extras import extra
from anonymizer.transport.kafka_problems import KafkaLostError

_ANSWER_S = 10.0
_MEDIA = "application/vnd.schemaregistry.v1+json"


class RegisteredSchema:
    """The schema of the messages of one topic.

    Parameters
    ----------
    url
        Of the registry; it may have a user and a password.
    topic
        The topic of Kafka; the subject is `<topic>-value`.
    form
        `json`: the content stays as it is. `avro`: it is encoded with the schema.
    schema
        A JSON Schema, or an Avro schema.
    """

    def __init__(
        self, url: str, *, topic: str, form: Literal["json", "avro"], schema: Mapping[str, Any]
    ) -> None:
        self._url, self._topic, self._form, self._schema = url, topic, form, schema
        self._encode: Callable[[bytes], bytes] = bytes
        if form == "avro":
            self._encode = _avro_encoder(schema)
        self._head = b""

    def register(self) -> None:
        """Have the schema in the registry; once is enough.

        Raises
        ------
        KafkaLostError
            If the registry does not answer, or refuses it. Nothing can be published then.
        """
        if self._head:
            return
        where = urlsplit(self._url)
        host = where.netloc.rpartition("@")[2]
        path = f"{where.path.rstrip('/')}/subjects/{quote(self._topic, safe='')}-value/versions"
        body = {"schema": json.dumps(self._schema), "schemaType": self._form.upper()}
        request = Request(  # noqa: S310  the settings admit http and https alone
            urlunsplit((where.scheme, host, path, "", "")),
            json.dumps(body).encode(),
            {"Content-Type": _MEDIA, "Accept": _MEDIA},
        )
        if where.username is not None:
            login = f"{unquote(where.username)}:{unquote(where.password or '')}".encode()
            request.add_header("Authorization", f"Basic {b64encode(login).decode()}")
        try:
            with urlopen(request, timeout=_ANSWER_S) as answer:  # noqa: S310  likewise
                number = json.load(answer)["id"]
            self._head = b"\0" + int(number).to_bytes(4)
        except HTTPError as error:
            with error:
                why = f"refuses the schema of {self._topic} (HTTP {error.code})"
        except OSError as error:
            why = f"does not answer ({type(error).__name__})"
        except (ValueError, LookupError, TypeError, OverflowError):
            why = "gives no number for a schema"
        else:
            return
        # Not chained: the error of the request has the address, with a password.
        raise KafkaLostError(f"kafka.schema_registry: {why}")

    def framed(self, payload: bytes) -> bytes:
        """Return a JSON message as it is in Kafka, once its schema is registered."""
        return self._head + self._encode(payload)


def _avro_encoder(schema: Mapping[str, Any]) -> Callable[[bytes], bytes]:
    with extra("avro"):
        import fastavro  # noqa: PLC0415  an extra

    parsed = fastavro.parse_schema(dict(schema))

    def encode(payload: bytes) -> bytes:
        out = BytesIO()
        fastavro.schemaless_writer(out, parsed, msgspec.json.decode(payload))
        return out.getvalue()

    return encode
