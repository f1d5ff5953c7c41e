"""Places of a list: drawn by lot, shared out among groups, and the trial that the draws make."""
