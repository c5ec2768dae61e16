"""Writing through a mount: dirty chunks, new arrays and changes of metadata."""
