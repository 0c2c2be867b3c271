"""HTTP routes of the files that outputs make."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from anonymizer.outputs.registry import asked_for

if TYPE_CHECKING:
    from fastapi import APIRouter

    from anonymizer.settings import Settings


def file_routes(
    settings: "Settings", newest: Callable[[str], bytes | None], *, token: str | None
) -> "list[APIRouter]":
    """Return a route for each output that makes a file.

    Parameters
    ----------
    newest
        Returns the newest file of an output, given its name; None: there is none yet.
    token
        Required if it is not None.
    """
    making = [each for each in asked_for(settings) if each.path]
    if not making:
        return []
    from anonymizer.web.network_file import file_router  # noqa: PLC0415  few ask for it

    return [
        file_router(
            each.path,
            partial(newest, each.name),
            what=each.what,
            when=f": a window of {each.every_s(settings):g} s that began after it is here"
            f" {each.delay_s(settings):g} s after its end",
            token=token,
        )
        for each in making
    ]
