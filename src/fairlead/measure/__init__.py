"""Alternatives measured in turns, and what their ratios say: the one instrument of the lab, of advice, of the
canary and of our own benchmarks. Needs nothing but the standard library."""
