"""Attacks on releases of others, each with its control."""
