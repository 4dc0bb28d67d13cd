"""What commands share: options, output, errors, a cluster to read."""
