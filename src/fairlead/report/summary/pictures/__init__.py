"""Pictures of a page: bars, curves, claims, timelines of the GIL, and passes of the scheduler."""
