"""Creation of nodes in a store, and the creation methods of groups."""
