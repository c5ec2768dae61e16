"""Panes, and the canvas that draws a picture."""
