"""culsans's queues are fairlead.sync's."""

import culsans
import two_sides

two_sides.put_into(culsans)
