"""What runs in the processes that measure: started for one answer each, and thrown away.

An interpreter that was found on the machine runs this too, and has no fairlead: the modules here import it
only where a job is for the interpreter that runs fairlead. ``worker.main`` is where each begins.
"""
