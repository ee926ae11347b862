"""The two graphs as one, ready for message passing."""
