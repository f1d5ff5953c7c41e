"""Which pairs of arms are asked about."""
