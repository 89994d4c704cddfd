"""What reports of all subjects share: names, units, words, the terminal, pages and pictures."""
