"""Benchmarks: what each part of the gateway costs, next to a peer in the same process."""
