"""The main window, its session and its actions."""
