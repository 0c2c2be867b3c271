"""What an adversary tries: one attack a file, see `anonymizer.audit.attack`."""
