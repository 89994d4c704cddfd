"""The lab: experiments on this machine and its interpreters, isolated, judged by honest statistics."""
