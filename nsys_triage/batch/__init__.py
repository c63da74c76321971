"""Many traces at once: what is there and what is done (plan), the work (run), and tables and a page on all of it (collect)."""
