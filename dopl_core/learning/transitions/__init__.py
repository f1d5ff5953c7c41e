"""How arms move, with help and without: what is believed of every transition row."""
