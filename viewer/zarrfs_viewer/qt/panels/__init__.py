"""Docked panels and dialogs."""
