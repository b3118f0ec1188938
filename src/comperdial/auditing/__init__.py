"""Audits of judges: agreement with people, biases, and human means estimated from judge scores."""
