"""The catalogue: one stand-alone program per experiment. See ``fairlead.lab.registry``."""
