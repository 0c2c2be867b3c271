"""One tick: columns of positions in, groups and messages out, every position accounted for."""
