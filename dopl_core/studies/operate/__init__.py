"""What owners do: make a study, plan, report, change the roster, get the list."""
