"""The application, the main window and its actions."""
