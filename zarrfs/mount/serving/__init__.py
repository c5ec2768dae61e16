"""The process that serves a mount."""
