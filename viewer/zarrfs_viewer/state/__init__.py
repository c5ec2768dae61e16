"""The user's settings as frozen values, and pure updates of them."""
