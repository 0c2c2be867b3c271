"""The only place that wires: settings become a running gateway, files a release."""
