"""``python -m fairlead``: the command, of the Python that it is to be."""

from fairlead.cli import main

main()
