"""The garbage collector never visits what a gateway has loaded before its first message."""

import gc

from anonymizer.app.gateway.service import _prepared
from anonymizer.settings import Settings


def test_what_is_loaded_before_the_first_message_is_frozen() -> None:
    gc.unfreeze()
    try:
        tables = {"network": {"source": "grid:5x5"}, "http": {"host": ""}}
        _prepared(Settings.model_validate(tables), None)
        assert gc.get_freeze_count() > 10_000
        assert gc.isenabled()
    finally:
        gc.unfreeze()
