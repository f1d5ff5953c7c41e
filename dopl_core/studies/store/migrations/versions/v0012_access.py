"""Schema 12: roles of people who sign in, their sessions, and the audit trail."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Bring a database of schema 11 to the tables of store/tables.py."""
    op.add_column("sessions", sa.Column("who", sa.Text, nullable=False, server_default=""))
    op.add_column("sessions", sa.Column("claims", sa.Text, nullable=False, server_default="{}"))
    roles = "role IN ('owner', 'coordinator', 'reader', 'annotator')"
    op.create_table(
        "members",
        sa.Column("study", sa.Text, primary_key=True),
        sa.Column("claim", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, primary_key=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.CheckConstraint(roles, name="members_role"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("study", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("act", sa.Text, nullable=False),
        sa.Column("about", sa.Text, nullable=False, server_default=""),
        sa.Column("refused", sa.Boolean, nullable=False),
    )
    op.create_index("audit_at", "audit", ["at"])
