"""The cost and waiting times of a simulated workload: values, tables and the page that shows them."""
