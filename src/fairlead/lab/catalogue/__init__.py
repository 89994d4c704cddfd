"""What there is to measure, and what to measure it with: experiments and interpreters."""
