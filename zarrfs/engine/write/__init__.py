"""Writing: chunks, single bytes, and the native writer."""
