"""The metadata of nodes: display, checks, comparison and editing."""
