"""Settings, image and viewport resolved to one frozen display state."""
