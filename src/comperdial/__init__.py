"""ComperDial Bench: which automatic metric of dialogue quality agrees with people.

>>> import comperdial
>>> f1 = comperdial.metric("f1")
>>> f1.score(["i like green tea"], references=["i like tea"])["f1"].round(3).tolist()
[0.857]
"""

from comperdial.errors import ComperdialError
from comperdial.metrics import create as metric

__version__ = "0.8.0"
__all__ = ["ComperdialError", "__version__", "metric"]
