"""Attacks on releases: what an adversary learns from published regions, classes and readings.

Pure functions from arrays to figures. They share
no code with the algorithms that form regions and classes: an auditor who counts with the author's
code repeats the author's mistakes. The bars that an attack must stay below are set in
`anonymizer.audit`.
"""
