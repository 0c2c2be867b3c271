"""Connecting a known source of positions: its settings, the broker's files, and a trial of both."""
