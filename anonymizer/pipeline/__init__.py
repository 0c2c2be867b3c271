"""Pipeline: from bytes to bytes, in ticks and windows, with every input accounted for."""
