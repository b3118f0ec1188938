"""USR and its two data sets (Mehri and Eskenazi 2020), and what later papers report of them."""
