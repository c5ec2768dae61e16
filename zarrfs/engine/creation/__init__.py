"""The metadata of new arrays: options, chunk shapes, codec chains."""
