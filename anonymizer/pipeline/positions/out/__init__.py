"""Output: messages about groups, in all their forms, and about public devices."""
