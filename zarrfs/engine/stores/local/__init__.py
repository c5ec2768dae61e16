"""A local directory as a store."""
