"""Values: what a study is and what happened in it. No database, no files but the owner's own."""
