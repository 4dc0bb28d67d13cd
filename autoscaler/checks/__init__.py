"""Before buying: whether what is bought would work in this cluster, and whether another autoscaler would launch for the
same pods."""
