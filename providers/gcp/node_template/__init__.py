"""What machines of a pool are on Google Cloud: node pools and instance groups that exist already."""
