"""Names of network sources, in a file that settings can load without the network."""


def sources_of(source: str) -> list[str]:
    """Return the sources of which a source of several networks consists: `A + B`."""
    return [each.strip() for each in source.split(" + ")]
