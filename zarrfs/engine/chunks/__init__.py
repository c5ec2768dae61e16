"""Chunk grids and chunk key encodings."""
