"""Reviewing links: the answers of a person, their file, and the page that asks for them."""
