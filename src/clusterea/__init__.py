"""Which entities of two knowledge graphs are the same, from structure and a few known pairs."""

__version__ = "0.1.0"
