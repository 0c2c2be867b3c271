"""Looking at the running gateway: Prometheus metrics and structured logs."""
