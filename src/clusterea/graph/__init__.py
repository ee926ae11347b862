"""Graphs as arrays: the union of both, neighborhoods, weights, and METIS."""
