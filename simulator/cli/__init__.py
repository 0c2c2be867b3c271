"""Command line of the simulator: options in, calls to the simulator, displays out."""
