"""A run of the lab: its plan, the order of its samples, and how each is taken."""
