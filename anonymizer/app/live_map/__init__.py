"""Live map: its frames, its rates and the view of an analyst."""
