"""Composition of decoded values to pixels."""
