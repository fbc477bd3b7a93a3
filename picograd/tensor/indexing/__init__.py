"""Indexing: x[...], gather, scatter, masks, and writing by index."""
