"""The functions that users call: open, create, like, save and load."""
