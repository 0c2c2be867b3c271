"""Models of releases of records: each a file with what it declares, promises and how it forms."""

MODULES = [f"{__name__}.kd", f"{__name__}.kld", f"{__name__}.kaca", f"{__name__}.cells"]
"""Where each model is, in the order in which help and settings tell of them; the first is usual."""
