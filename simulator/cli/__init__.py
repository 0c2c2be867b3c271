"""The command line of the simulator: parse, call, print."""
