"""Tools for developers of this project; not installed with it."""
