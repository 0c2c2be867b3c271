"""The public functions, for programs and notebooks; import them from `anonymizer`.

Tables and traces are paths or data frames of polars or pandas. What is returned is of the kind
that was given, and polars where that was a path. They need the extra `tables`.
"""

from anonymizer.extras import require

require("tables")
