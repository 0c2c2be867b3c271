"""Domain: networks, fixes, records, promises, outcomes and releases as plain data."""
