"""Ways in for data: readers, splits, the generator, and downloads."""
