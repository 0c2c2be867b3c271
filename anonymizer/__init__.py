"""A privacy gateway for moving devices."""

__version__ = "0.1.0"
