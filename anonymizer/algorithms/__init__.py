"""Pure algorithms over arrays: no I/O, no clock, no randomness that was not passed in."""
