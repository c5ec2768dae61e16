"""On-disk formats. Each format translates its documents to the internal model and back."""
