"""Measurements of shapes, and the regions of the image."""
