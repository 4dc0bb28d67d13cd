"""What a simulated workload cost and how long it waited: the values, tables and the page that show it."""
