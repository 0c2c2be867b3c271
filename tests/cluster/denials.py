"""What a Kafka denies everybody while a block runs."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.cluster.kafka import Kafka
from tests.cluster.processes import wait_until

_EVERYBODY = "User:*"


@contextmanager
def denied(kafka: Kafka, topic: str, *operations: AclOperation) -> Iterator[None]:
    """Deny everybody some operations on a topic."""
    admin = AdminClient({"bootstrap.servers": kafka.address})
    where = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, _EVERYBODY, "*")
    # Without the first one, nobody but superusers may do anything where there are denials.
    bindings = [AclBinding(*where, AclOperation.ALL, AclPermissionType.ALLOW)]
    bindings += [AclBinding(*where, each, AclPermissionType.DENY) for each in operations]
    for future in admin.create_acls(bindings).values():
        future.result()
    every = AclBindingFilter(*where, AclOperation.ANY, AclPermissionType.ANY)

    def n_known() -> int:
        return len(admin.describe_acls(every).result())

    # Kafka answers before its broker knows them.
    wait_until(lambda: n_known() == len(bindings), "denials")
    try:
        yield
    finally:
        for future in admin.delete_acls([every]).values():
            future.result()
        wait_until(lambda: n_known() == 0, "no denials")
