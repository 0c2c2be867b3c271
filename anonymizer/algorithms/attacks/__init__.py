"""Attacks on a stream of cloaked positions: what an adversary gets out of what was published.

Pure functions, arrays in and figures out, one module an attack or a family. They share no code
with the cloaking algorithms: an auditor who counts with the author's own code repeats his
mistakes. What a bar is and whether it is met is judged in `anonymizer.app.audit`.
"""
