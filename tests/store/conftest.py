"""A store of records, of which one stream was recalled."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from anonymizer.store import RecordStore
from tests.store.kept import recall


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[RecordStore]:
    opened = RecordStore(path, keep_published_s=100)
    recall(opened)
    yield opened
    opened.close()
