"""Cloaking of positions: devices on a road network in, regions shared by groups out."""
