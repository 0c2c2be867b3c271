"""Records in a cluster: a stream is the unit of work, from raw parts to the classes of windows."""
