"""Positions flow: the deliveries of a tick in, cloaked regions out.

bytes -> decode -> tick -> locate -> density -> choose k -> region -> verify -> encode -> publish
"""
