"""What the gateway costs, each part beside a peer that does the same in the same process."""
