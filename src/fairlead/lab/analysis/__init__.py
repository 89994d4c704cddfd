"""From samples to summaries: intervals, growth, claims, and what differs between runs."""
