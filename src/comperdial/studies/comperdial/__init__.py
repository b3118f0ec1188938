"""ComperDial (Wakaki et al. 2024): its numbered tables, for any data set in its form."""
