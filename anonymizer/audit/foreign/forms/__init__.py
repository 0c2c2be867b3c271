"""Forms of releases of others: each is recognized in a table, and read to arrays."""
