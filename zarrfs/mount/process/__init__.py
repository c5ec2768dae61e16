"""The process that serves a mount: start, list, stop."""
