"""Tables, figures, pages and notebooks made from results."""
