"""What arrays and groups have in common: their base class, attributes, subtrees and replacement."""
