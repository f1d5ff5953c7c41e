"""DOPL: whom to help next, learned from which-of-these-two answers."""
