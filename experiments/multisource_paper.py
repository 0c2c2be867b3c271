"""What is known of the paper's own figures, to stand beside those of the experiment.

Its tables were not to be had when this was written, only these figures of it, handed down. What is
not here is not known, and stays empty in the results.

References
----------
.. [1] "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets", Applied
   Sciences 14(8), 3230, 2024.
"""

from experiments.made_tables import ADULT_ROWS, CENSUS_ROWS
from experiments.multisource_experiment import K, Method, Reading, Trial

ON_ADULT = {
    Trial(Reading.PAPER, Method.HILBERT, K, d): figures
    for d, figures in {
        1: {"gcp_range": 0.12},
        2: {"classes": 389, "gcp_range": 0.289, "gcp_set": 0.242, "gcp_taxonomy": 0.541},
        3: {"gcp_range": 0.41},
        4: {"gcp_range": 0.50},
        5: {"gcp_range": 0.58},
    }.items()
}
"""Of the paper's algorithm, by the names of the results."""
SECONDS = {ADULT_ROWS: 0.3, CENSUS_ROWS: 61.9}
"""On Adult and on the Census of 1990, by their records; on another machine."""
NAMES = ("classes", "gcp_range", "gcp_set", "gcp_taxonomy")
NOTE = (
    "paper: figures of the paper's algorithm on Adult, and its times on Adult and the Census of "
    "1990, as far as they are known here; empty where not."
)
