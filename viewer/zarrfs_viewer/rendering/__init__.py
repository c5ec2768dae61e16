"""Rendering of decoded values to pixels: sampling, contrast, colours and labels."""
