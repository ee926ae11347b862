"""Numerics: tensors in, tensors out; no graph, no config, no file."""
