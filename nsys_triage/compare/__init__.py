"""Two runs to one comparison."""
