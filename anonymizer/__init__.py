"""Privacy gateway for moving devices: raw positions and records in, k-anonymous data out."""

__version__ = "0.1.0"
