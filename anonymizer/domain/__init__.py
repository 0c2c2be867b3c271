"""What the gateway speaks of: networks, fixes, outcomes, releases. Plain data, no behaviour."""
