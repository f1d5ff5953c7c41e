"""What is believed, asked and planned. Knows no file, no database and no experiment."""
