"""Records kept from their acknowledgement to their publication, in one SQLite file."""

from anonymizer.store.copying import back_up
from anonymizer.store.records import RecordStore
from anonymizer.store.releases import ReleaseReader

__all__ = ["RecordStore", "ReleaseReader", "back_up"]
