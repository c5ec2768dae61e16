"""Stores that add a behaviour to another store."""
