"""The catalogue: one stand-alone program per experiment. See ``fairlead.lab.catalogue.registry``."""
