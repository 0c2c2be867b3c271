"""Positions flow: the deliveries of a tick in, cloaked regions out.

bytes -> decode -> tick -> locate -> density -> choose k -> region -> verify -> encode -> publish

`decode` reads what arrived, `tick` makes releases, `counts` counts devices, `out` writes messages.
"""
