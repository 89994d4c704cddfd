"""The lab: experiments on this machine and its interpreters, run in isolation and judged by honest statistics."""
