"""Many traces at once: what is there (plan), the work (run, pool, dask), tables and a page on all of it (collect)."""
