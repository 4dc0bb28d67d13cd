"""Reading a GPU node: what is there (read_nvml, read_host), its record, and what the catalog makes of it (entry)."""
