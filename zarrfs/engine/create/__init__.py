"""Creation of nodes: options, metadata and the nodes in a store."""
