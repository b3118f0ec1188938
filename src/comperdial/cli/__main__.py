"""Run as ``python -m comperdial.cli``."""

import sys

from comperdial.cli import main

sys.exit(main())
