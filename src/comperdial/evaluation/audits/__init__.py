"""The parts of an audit of a judge (:mod:`comperdial.evaluation.audit`)."""
