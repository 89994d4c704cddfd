"""What recordings and snapshots of the counters say: totals, blame, findings. No GIL is touched here."""
