"""Bundles: export, import, codebook, seals, and the removal of names."""
