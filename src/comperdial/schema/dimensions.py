"""What ComperDial's raters rate (A.7): an overall score, and at dialogue level marks on axes."""

OVERALL = "Overall"
OVERALL_SCALE = (1.0, 5.0)
# A mark is kept as 0 (marked: a problem) or 1 (not marked), so that higher is better on every dimension.
AXES = ("Fluency", "Coherence", "Consistency", "Engagingness", "Persona consistency", "Humanness")
AXIS_SCALE = (0.0, 1.0)
