"""Studies: an event log in a database, and a learner that is its fold."""
