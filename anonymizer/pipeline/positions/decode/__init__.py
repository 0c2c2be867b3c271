"""Decoding: the bytes that arrived in, columns of positions out."""
