"""Traffic for the gateway: made up on a road network, or replayed from a recorded trace."""
