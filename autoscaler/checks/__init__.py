"""Before buying: whether what is bought would work in this cluster, and whether somebody else would buy it as well."""
