"""Which thread gets the GIL next: a policy in place of chance. See docs/explanation/gil-scheduler.md."""
