"""Schema 11: what protects studies from visitors, from double counting and from tampering."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Bring a database of schema 10 to the tables of store/tables.py."""
    _add_digests_of_configurations()
    op.add_column("epochs", sa.Column("digest", sa.Text))
    op.add_column("sessions", sa.Column("host", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "drafts",
        _study(),
        sa.Column("week", sa.Integer, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    for name in ("link", "participant", "code"):
        op.add_column("annotators", sa.Column(name, sa.Text))
    op.create_table(
        "seats",
        _study(),
        sa.Column("link", sa.Text, primary_key=True),
        sa.Column("participant", sa.Text, primary_key=True),
        sa.Column("browser_hash", sa.Text, nullable=False),
        sa.Column("taken_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "mappings",
        _study(),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
    )


def _study() -> sa.Column[str]:
    link = sa.ForeignKey("studies.id", ondelete="CASCADE")
    return sa.Column("study", sa.Text, link, primary_key=True, nullable=False)


def _add_digests_of_configurations() -> None:
    for name in ("changes_chain", "in_force_chain"):
        op.add_column("studies", sa.Column(name, sa.Text, nullable=False, server_default=""))
    connection = op.get_bind()
    made = sa.text(
        "SELECT chain FROM events WHERE study = :study AND kind IN ('settings_changed', "
        "'arms_joined', 'arms_left', 'history_added') ORDER BY seq"
    )
    keep = sa.text("UPDATE studies SET changes_chain = :all, in_force_chain = :some WHERE id = :id")
    studied = sa.text("SELECT id, changes, in_force FROM studies WHERE changes > 0")
    for study, changes, in_force in connection.execute(studied).all():
        # The first events of old studies have no chain: there the number has to do.
        chains = ["", *connection.execute(made, {"study": study}).scalars()]
        last = {
            name: chains[count] or str(count) if count else ""
            for name, count in (("all", changes), ("some", in_force))
        }
        connection.execute(keep, {"id": study, **last})
