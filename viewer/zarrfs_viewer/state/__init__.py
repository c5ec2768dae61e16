"""The user's settings as frozen values, and pure functions that update them."""
