"""The sharding_indexed codec."""
