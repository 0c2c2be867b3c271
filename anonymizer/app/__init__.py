"""Use cases: the only layer that wires the others into a gateway, a release or an audit."""
