"""Gateway service: both flows, wired to the broker, the store and HTTP."""
