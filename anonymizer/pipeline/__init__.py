"""From bytes to bytes: decode, locate, cloak, verify, encode; in ticks, with accounting."""
