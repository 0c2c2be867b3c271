"""Records flow: parts of records from several sources in, published equivalence classes out.

bytes -> decode -> join by vehicle -> event-time window -> anonymize -> verify -> encode -> publish
"""
