"""Table responses: columns and cells of each kind."""
