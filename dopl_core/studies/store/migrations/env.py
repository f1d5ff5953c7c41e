"""Alembic's entry: runs the migrations on the connection that the store has opened and locked."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
