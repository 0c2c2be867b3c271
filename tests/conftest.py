"""What holds for every test."""

from hypothesis import settings

# Kernels compile at their first call, and machines are shared: time is no property of a case.
settings.register_profile("anonymizer", deadline=None)
settings.load_profile("anonymizer")
