"""What the data says: tables, agreement, effect of help, forecast and its sentences."""
