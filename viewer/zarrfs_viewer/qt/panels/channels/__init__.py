"""The channels of the image: colours, contrast limits and histograms."""
