"""Simulator: traffic for the gateway, generated on a road network or replayed from a trace."""
