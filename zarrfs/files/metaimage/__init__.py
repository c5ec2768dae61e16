"""MetaImage."""
