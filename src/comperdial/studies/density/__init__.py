"""The study of DEnsity (Park et al. 2023): what it reported, and its tables and figures."""
