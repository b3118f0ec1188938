"""Task 1 of the CPD challenge (ComperDial, 3.2.2 and A.6): agents, submissions and their limits."""
