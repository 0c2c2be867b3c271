"""A release as its reader sees it: regions, pieces and labels, as arrays."""
