"""Numbers to plain geometry, nothing else.

Horizontal places and lengths are percent of the plot's width (0..100), so that a picture fits any page
without being scaled; vertical ones are pixels. No chart holds more than `MAX_MARKS` marks.
"""

from typing import Final

MAX_MARKS: Final = 2000
