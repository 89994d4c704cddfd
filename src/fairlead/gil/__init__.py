"""The GIL of a running interpreter: ``observe`` (who holds it, who waits, who blocked whom)."""
