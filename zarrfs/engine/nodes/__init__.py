"""The public nodes: arrays and groups."""
