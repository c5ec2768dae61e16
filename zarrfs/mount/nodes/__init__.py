"""The nodes that a mount presents: opened, compared with the store, and held in bounded memory."""
