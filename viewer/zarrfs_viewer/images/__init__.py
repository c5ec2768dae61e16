"""Datasets and images: opening, axes, channels, pyramid levels and reading."""
