"""Panels and dialogs."""
