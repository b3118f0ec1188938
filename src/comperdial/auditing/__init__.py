"""Audits of judges: whether one may stand in for a person, where it is wrong, and what people would say of all it judged."""
