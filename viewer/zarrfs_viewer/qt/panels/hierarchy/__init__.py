"""The tree of open locations, and the actions on its nodes."""
