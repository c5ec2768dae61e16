"""Mutation testing: the share of small changes of the code that the tests detect. See ``__main__``."""
