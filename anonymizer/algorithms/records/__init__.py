"""Records in, equivalence classes out.

`problem` states what is asked, `judging` says whether one class meets it and what it costs;
everything else finds classes (`hilbert_sweep`, `best`, …), measures them or checks them.
"""
