"""Resolution of settings, image and viewport to one frozen display state."""
