"""How the tables came to be, version after version."""
