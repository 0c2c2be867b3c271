"""Sources of networks by name; apart from the network, which settings need not load."""


def sources_of(source: str) -> list[str]:
    """Return the sources of which a source of several networks consists: `A + B`."""
    return [each.strip() for each in source.split(" + ")]
