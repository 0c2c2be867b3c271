"""Positions in a cluster: the stages between the messages of devices and the cloaked regions."""
