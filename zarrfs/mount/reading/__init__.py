"""Reading of virtual files: their content, access patterns, and blocks in bounded memory."""
