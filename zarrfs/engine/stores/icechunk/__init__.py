"""Repositories of Icechunk: their locations, opening them, and their sessions as stores.

See https://icechunk.io/en/latest/. The package ``icechunk`` is imported only when a repository is opened.
"""
