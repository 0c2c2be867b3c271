"""Tuning: a search for the k and l that a release can afford, and the settings it proposes."""
