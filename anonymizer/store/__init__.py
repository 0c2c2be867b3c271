"""Store: records from their acknowledgement to their publication, in one SQLite file."""

from anonymizer.store.backup import back_up
from anonymizer.store.published_windows import ReleaseReader
from anonymizer.store.record_store import RecordStore
from anonymizer.store.release_file import ReleaseFile

__all__ = ["RecordStore", "ReleaseFile", "ReleaseReader", "back_up"]
