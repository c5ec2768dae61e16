"""Data sets and images: opening, axes, channels, levels, reading."""
