"""What is published of devices besides groups: each output in one place, see `output`."""
