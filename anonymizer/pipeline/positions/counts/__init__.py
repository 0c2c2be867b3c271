"""Counts: how many devices were where, and what anybody may know of the flow."""
