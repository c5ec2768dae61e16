"""The examples of README.md and docs/."""
