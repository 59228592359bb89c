"""Controllers of the server: they follow the views and write objects, as clients do."""
