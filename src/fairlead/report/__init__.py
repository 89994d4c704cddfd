"""Reports: pure data in, terminal tables, one-file offline HTML, JSON and CSV out."""
