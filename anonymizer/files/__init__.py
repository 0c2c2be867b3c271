"""Files of data in and out, as arrays."""
