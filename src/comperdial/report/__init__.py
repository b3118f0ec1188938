"""Tables, figures and notebooks made from results."""
