"""Creation of nodes in a store, and the options that are taken from an existing array."""
