"""Reading and writing the chunks of one array."""
