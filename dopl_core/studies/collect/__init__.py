"""What annotators do: get a duel, answer it, look back, practise."""
