"""Cloaking regions: devices on a road network in, groups that share one region out."""
