"""The database: tables, queries, inserts, the write transaction, and readers."""
