"""Plates: the panel with the wells, their overview, and the steps between wells."""
