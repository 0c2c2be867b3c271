"""Releases of others: what form they have, what attacks find in them, and how surely.

A file is read by one of the *readers*, recognized as one of the *forms*, and attacked by what can
be mounted on that form. `registry` names them all; the command and the report name none.
"""
