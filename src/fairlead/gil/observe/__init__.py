"""Who holds the GIL, who waits, who blocked whom: analysis of recordings and counters, and what they mean."""
