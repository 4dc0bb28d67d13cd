"""The node template of Google Cloud: node pools and instance groups that exist already."""
